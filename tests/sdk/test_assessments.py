"""What tools say of single calls."""

from __future__ import annotations

import pytest

from amplifier_sdk import ToolError, tool
from amplifier_sdk.assessments import AssessesCalls, Assessment, assess, assessor_of
from amplifier_sdk.progress import ToolContext
from amplifier_sdk.results import HookResult
from amplifier_sdk.tools import FunctionTool


@tool(effects=("exec",))
async def plain(x: int) -> int:
    """Do nothing."""
    return x


@tool(effects=("exec",))
async def evaluated(x: int, context: ToolContext, y: int = 0) -> int:
    """Do nothing."""
    return x


@evaluated.assessor
async def _assess(x: int, y: int = 0) -> Assessment:
    if x < 0:
        raise ToolError("x is below 0")
    return Assessment(effects=("read",) if x else ("exec",), reason=f"{x} {y}")


class Counter:
    """Counts from where it began."""

    def __init__(self, start: int) -> None:
        self.start = start

    @tool
    async def add(self, x: int) -> int:
        """Add."""
        return self.start + x

    @add.assessor
    async def _assess(self, x: int) -> Assessment | None:
        return (
            None
            if x == 0
            else Assessment(decision="ask", reason=f"{self.start} and {x}")
        )


async def test_a_tool_without_an_assessor_says_nothing() -> None:
    assert assessor_of(plain) is None
    assert await assess(plain, {"x": 1}) is None
    assert await assess(None, {}) is None


async def test_an_assessor_takes_what_the_function_takes() -> None:
    assert isinstance(evaluated, AssessesCalls)
    assert await assess(evaluated, {"x": 1, "y": 2}) == Assessment(
        effects=("read",), reason="1 2"
    )
    assert await assess(evaluated, {"x": 0}) == Assessment(
        effects=("exec",), reason="0 0"
    )


async def test_an_error_of_the_tool_is_why_the_call_must_fail() -> None:
    assert await assess(evaluated, {"x": -1}) == Assessment(problem="x is below 0")


async def test_of_a_method_it_is_a_method_of_the_same_instance() -> None:
    assert isinstance(Counter.add, FunctionTool)
    assert await assess(Counter(5).add, {"x": 2}) == Assessment(
        decision="ask", reason="5 and 2"
    )
    assert await assess(Counter(5).add, {"x": 0}) is None


def test_effects_and_decisions_are_known_words() -> None:
    with pytest.raises(ValueError, match="effects are one or more of"):
        Assessment(effects=("fly",))
    with pytest.raises(ValueError, match="decision"):
        Assessment(decision="perhaps")  # type: ignore[arg-type]  # likewise


def test_a_handler_approves_by_an_answer_that_changes_nothing() -> None:
    approval = HookResult.approve("by a rule")
    assert (approval.action, approval.reason, approval.approves) == (
        "continue",
        "by a rule",
        True,
    )
