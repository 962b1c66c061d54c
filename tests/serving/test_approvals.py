"""A question of a turn is an event, and a second request answers it."""

from __future__ import annotations

import jsonschema_rs
import pytest

from amplifier import Agent
from amplifier.serving import Token
from amplifier.serving.approvals import ServedApprovals
from amplifier.serving.schema import EVENT_SCHEMA, SESSION_SCHEMA
from amplifier_sdk import HookResult, tool
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.handlers import on
from tests.doubles import ScriptedProvider, call, calling
from tests.serving.client import BOB, Caller, Event, Stream, serving

PERSON = Token(name="person", secret="person-secret-0123", may_approve=True)
TOKENS = (PERSON, BOB)


@tool
def transfer(amount: int) -> str:
    """Transfer money."""
    return f"transferred {amount}"


class Guard:
    def __init__(self, timeout: float = 60) -> None:
        self.timeout = timeout

    @on(TOOL_PRE)
    async def ask(self, event: str, data: ToolPre) -> HookResult:
        return HookResult.ask(
            "Really?", options=("Allow once", "Deny"), timeout=self.timeout
        )


def agent(**options: float) -> Agent[None, str]:
    provider = ScriptedProvider(calling(call("transfer", {"amount": 7})), "Done.")
    return Agent(provider, tools=[transfer], hooks=[Guard(**options)])


async def until(stream: Stream, kind: str) -> Event:
    async for event in stream:
        jsonschema_rs.validate(EVENT_SCHEMA, event.data)
        if event.type == kind:
            return event
    raise AssertionError(kind)


@pytest.mark.parametrize(("option", "success"), [("Allow once", True), ("Deny", False)])
async def test_a_second_request_answers(option: str, success: bool) -> None:
    async with serving(agent(), tokens=TOKENS) as known:
        person = Caller(known.app, PERSON.secret)
        session = await person.begin()
        turn = await person.turn(session)
        path = f"/sessions/{session}"
        async with person.stream("GET", f"{turn}/events") as stream:
            asked = await until(stream, "approval_requested")
            shown = (await person.get(path)).json
            place = f"{path}/approvals/{asked.data['approval_id']}"
            other = await Caller(known.app, BOB.secret).post(place, {"option": option})
            wrong = await person.post(place, {"option": "Allow everything"})
            unknown = await person.post(f"{path}/approvals/x", {"option": option})
            answered = await person.post(place, {"option": option})
            again = await person.post(place, {"option": option})
            said = await until(stream, "approval_answered")
            finished = await until(stream, "tool_finished")
            await stream.rest()

    assert "transfer" in asked.data["prompt"]
    assert asked.data["options"] == ["Allow once", "Deny"]
    assert shown["approvals"][0]["approval_id"] == asked.data["approval_id"]
    jsonschema_rs.validate(SESSION_SCHEMA, shown)
    statuses = [each.status for each in (other, wrong, unknown, answered, again)]
    assert statuses == [404, 422, 404, 204, 404]
    assert said.data["option"] == option
    assert finished.data["success"] is success


async def test_a_question_that_nobody_answers_is_withdrawn_and_denied() -> None:
    async with serving(agent(timeout=0.01), tokens=TOKENS) as known:
        person = Caller(known.app, PERSON.secret)
        session = await person.begin()
        events = await person.events(await person.turn(session))
        shown = (await person.get(f"/sessions/{session}")).json

    kinds = [event.type for event in events]
    assert kinds.index("approval_requested") < kinds.index("approval_withdrawn")
    (finished,) = [event for event in events if event.type == "tool_finished"]
    assert not finished.data["success"]
    assert shown["approvals"] == []


async def test_cancelling_a_turn_withdraws_its_question() -> None:
    async with serving(agent(), tokens=TOKENS) as known:
        person = Caller(known.app, PERSON.secret)
        turn = await person.turn(await person.begin())
        async with person.stream("GET", f"{turn}/events") as stream:
            await until(stream, "approval_requested")
            await person.post(f"{turn}/cancel")
            await until(stream, "approval_withdrawn")
            await until(stream, "turn_cancelled")
            await stream.rest()


async def test_a_token_that_may_not_approve_is_not_asked() -> None:
    async with serving(agent(), tokens=TOKENS) as known:
        bob = Caller(known.app, BOB.secret)
        events = await bob.events(await bob.turn(await bob.begin()))

    assert "approval_requested" not in [event.type for event in events]
    (finished,) = [event for event in events if event.type == "tool_finished"]
    assert not finished.data["success"]


async def test_outside_of_a_turn_nobody_can_be_asked() -> None:
    with pytest.raises(ApprovalUnavailableError):
        await ServedApprovals().request_approval("?", ["Allow"], 1, "deny")


async def test_a_question_without_a_deadline_says_so() -> None:
    async with serving(agent(timeout=float("inf")), tokens=TOKENS) as known:
        person = Caller(known.app, PERSON.secret)
        turn = await person.turn(await person.begin())
        async with person.stream("GET", f"{turn}/events") as stream:
            asked = await until(stream, "approval_requested")

    assert asked.data["timeout"] is None
