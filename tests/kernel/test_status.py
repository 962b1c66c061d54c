"""What a session says of itself when it is asked."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from amplifier.kernel.sessions.status import SessionStatus
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import LLMError
from amplifier_sdk.results import ToolResult
from tests.doubles import Worker, answer, build_session, call, calling

USAGE = Usage(
    input_tokens=6, output_tokens=4, total_tokens=10, cost_usd=Decimal("0.10")
)


async def test_a_session_that_did_nothing_runs() -> None:
    before = datetime.now(UTC)
    session = build_session(session_id="mine")

    status = session.status

    assert before <= status.started_at <= datetime.now(UTC)
    assert status == SessionStatus(session_id="mine", started_at=status.started_at)
    assert status.to_dict() == {
        "session_id": "mine",
        "started_at": status.started_at.isoformat(),
        "status": "running",
        "total_messages": 0,
        "tool_invocations": 0,
        "tool_successes": 0,
        "tool_failures": 0,
        "total_input_tokens": 0,
        "total_output_tokens": 0,
    }


async def test_a_status_has_the_figures_of_all_turns() -> None:
    async def fail(input: object) -> object:
        return ToolResult.failure("no")

    session = build_session(
        calling(call("work"), call("fail")),
        answer("a", usage=USAGE),
        answer("b"),
        tools=[Worker(), Worker("fail", fail)],
    )
    async with session:
        await session.execute("x")
        first = session.status.last_activity
        await session.execute("y")
        status = session.status

    assert first is not None
    assert status.last_activity is not None
    assert status.started_at <= first <= status.last_activity
    assert (status.tool_invocations, status.tool_successes, status.tool_failures) == (
        2,
        1,
        1,
    )
    assert (status.total_input_tokens, status.total_output_tokens, status.cost_usd) == (
        6,
        4,
        Decimal("0.10"),
    )
    assert status.total_messages == len(
        await session.coordinator.context.get_messages()
    )
    assert json.loads(json.dumps(status.to_dict()))["cost_usd"] == "0.10"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), "completed"),
        (("a",), "completed"),
        (("a", LLMError("no")), "failed"),
        ((LLMError("no"), "a"), "completed"),
    ],
)
async def test_a_session_ends_as_its_last_turn_did(
    steps: tuple[str | Exception, ...], expected: str
) -> None:
    session = build_session(*steps)
    async with session:
        for step in steps:
            with (
                pytest.raises(LLMError) if isinstance(step, LLMError) else nullcontext()
            ):
                await session.execute("x")
            if isinstance(step, LLMError):
                assert session.status.last_error == {
                    "type": "LLMError",
                    "message": "no",
                }
        assert session.status.status == "running"

    assert session.status.status == expected
    assert session.status.ended_at is not None
