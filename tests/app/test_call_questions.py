"""What an answer covers: whatever changes of a call makes another question of it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from amplifier.app.questions.call_questions import CallQuestions
from amplifier_sdk.approvals import ApprovalRequest
from amplifier_sdk.errors import ApprovalUnavailableError
from tests.doubles import Worker, build_session


async def question_id(
    description: str = "Works.",
    *,
    arguments: object = None,
    session_id: str = "s",
    bound: str = "call",
    **details: object,
) -> str:
    """Return the id of the question about a call of a tool."""
    session = build_session("end", tools=[Worker(description=description)])
    async with session:
        questions = CallQuestions(session_id, session.coordinator)
        known: Mapping[str, object] = {
            "tool_input": {"path": "a"} if arguments is None else arguments,
            "prompt": "Sure?",
            "hook": "guard",
            "agents": ["scribe"],
        }
        request = ApprovalRequest(
            tool_name="work",
            action="Sure?",
            risk_level="low",
            details={**known, **details},
        )
        made = questions.of(request, ("Allow", "Deny"), bound)
        # when it was asked is no part of what it is
        again = questions.of(attrs.evolve(request), ("Allow", "Deny"), bound)
        assert again.question_id == made.question_id
        return made.question_id


async def test_whatever_changes_makes_another_question() -> None:
    first = await question_id()
    others = [
        await question_id("Works, and deletes."),
        await question_id(arguments={"path": "b"}),
        await question_id(session_id="t"),
        await question_id(bound="another call"),
        await question_id(prompt="Really?"),
        await question_id(hook="another"),
        await question_id(agents=["scribe", "helper"]),
        await question_id(agents=[]),
    ]

    assert await question_id() == first
    assert len({first, *others}) == 1 + len(others)


async def test_order_of_arguments_is_no_change() -> None:
    one = await question_id(arguments={"a": 1, "b": 2})

    assert await question_id(arguments={"b": 2, "a": 1}) == one


async def test_tool_that_nobody_could_see_change_is_not_asked_about() -> None:
    session = build_session("end")
    async with session:
        request = ApprovalRequest(
            tool_name="work",
            action="Sure?",
            risk_level="low",
            details={"tool_input": {}},
        )
        with pytest.raises(ApprovalUnavailableError):
            CallQuestions("s", session.coordinator).of(request, ("Allow",))
