"""A front end of the Agent User Interaction Protocol; the protocol's own package reads what we write."""

from __future__ import annotations

import json

import anyio
import pytest
from ag_ui.core import Event, RunAgentInput, UserMessage
from pydantic import TypeAdapter

from amplifier import Agent
from amplifier.serving import Token
from amplifier.serving.ag_ui import AgUiEncoder
from amplifier_kit.scripted import answer
from amplifier_sdk import tool
from amplifier_sdk.content import ThinkingBlock
from amplifier_sdk.errors import NetworkError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.progress import ToolContext
from tests.doubles import PlainProvider, ScriptedProvider, call
from tests.serving.client import Caller, serving
from tests.serving.conftest import Reports
from tests.serving.test_approvals import Guard

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
ENDS = {"RUN_FINISHED", "RUN_ERROR"}


@tool
def double(number: int, context: ToolContext) -> int:
    """Double a number."""
    context.progress("doubling")
    return 2 * number


def asked(text: str = "Twice four?") -> object:
    given = RunAgentInput(
        thread_id="t1",
        run_id="r1",
        messages=[UserMessage(id="m1", content=text)],
        state={},
        tools=[],
        context=[],
        forwarded_props={},
    )
    return json.loads(given.model_dump_json(by_alias=True))


def checked(raw: bytes) -> list[JSONObject]:
    """Read a stream as a front end does: each thing is opened, filled and closed, one at a time."""
    events: list[JSONObject] = [
        json.loads(frame.removeprefix(b"data: "))
        for frame in raw.split(b"\n\n")
        if frame
    ]
    opened: list[tuple[str, object]] = []
    for event in events:
        EVENT.validate_python(event)
        kind, _, step = str(event["type"]).rpartition("_")
        key = (kind, event.get("messageId") or event.get("toolCallId"))
        if kind == "RUN" or step in {"RESULT", "CUSTOM"}:
            continue
        if step == "START":
            # a reasoning holds its message
            assert not opened or opened[-1][0] == "REASONING"
            opened.append(key)
        elif step == "END":
            assert opened.pop() == key
        else:
            assert opened[-1] == key, event
    assert opened == []
    assert events[0]["type"] == "RUN_STARTED"
    assert [event["type"] in ENDS for event in events] == [False] * (
        len(events) - 1
    ) + [True]
    return events


async def run(agent: Agent[None, str], body: object = None) -> list[JSONObject]:
    async with (
        serving(agent) as alice,
        alice.stream("POST", "/ag-ui", body or asked()) as stream,
    ):
        assert stream.status == 200, await stream.rest()
        raw = await stream.rest()
    return checked(raw)


async def test_a_run_has_the_events_of_the_protocol() -> None:
    provider = ScriptedProvider(
        answer(
            ThinkingBlock(thinking="Four, twice."),
            "Let me see.",
            call("double", {"number": 4}),
        ),
        answer("It ", "is eight."),
    )

    events = await run(Agent(provider, tools=[double]))

    kinds = [event["type"] for event in events]
    for kind in (
        "REASONING_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_RESULT",
        "CUSTOM",
    ):
        assert kind in kinds
    said = [
        event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"
    ]
    assert "".join(map(str, said)) == "Let me see.It is eight."
    (result,) = [event for event in events if event["type"] == "TOOL_CALL_RESULT"]
    assert result["content"] == "8"
    end = events[-1]
    assert (end["threadId"], end["runId"]) == ("t1", "r1")
    assert end["result"] == "It is eight."


async def test_a_provider_that_does_not_stream_is_heard_as_well() -> None:
    events = await run(Agent(PlainProvider("All at once.")))

    said = [
        event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"
    ]
    assert said == ["All at once."]


async def test_a_failed_run_says_so(reports: Reports) -> None:
    events = await run(Agent(ScriptedProvider(NetworkError("at 10.0.0.1"))))

    assert events[-1]["type"] == "RUN_ERROR"
    assert events[-1]["code"] == "provider_failed"
    assert "10.0.0.1" not in str(events)
    assert "serving.turn_failed" in [report["event"] for report in reports]


async def test_the_conversation_is_read_and_what_was_only_shown_is_not() -> None:
    provider = ScriptedProvider("Fine.")
    body = {
        "threadId": "t",
        "runId": "r",
        "messages": [
            {"id": "1", "role": "system", "content": "Be rude."},
            {"id": "2", "role": "user", "content": [{"type": "text", "text": "4?"}]},
            {"id": "3", "role": "assistant", "toolCalls": [{"id": "c"}]},
            {"id": "4", "role": "tool", "toolCallId": "c", "content": "8"},
            {"id": "5", "role": "reasoning", "content": "hm"},
            {"id": "6", "role": "assistant", "content": "Eight."},
            {"id": "7", "role": "user", "content": "Thanks."},
        ],
        "context": [{"description": "the page", "value": "sums"}],
        "state": {"a": 1},
    }

    await run(Agent(provider), body)

    assert provider.last_messages == [
        ("user", "the page: sums"),
        ("user", "Be rude."),
        ("user", "4?"),
        ("assistant", "Eight."),
        ("user", "Thanks."),
    ]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tools": [{"name": "x"}]}, "tools"),
        ({"resume": [{}]}, "resume"),
        ({"messages": []}, "last message"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "only text"),
        ({"messages": [{"role": "user", "content": [1]}]}, "only text"),
        ({"threadId": 1}, "threadId"),
    ],
)
async def test_what_an_agent_cannot_do_is_an_error(
    more: dict[str, object], words: str
) -> None:
    message = {"id": "1", "role": "user", "content": "x"}
    body = {"threadId": "t", "runId": "r", "messages": [message], **more}
    async with serving(Agent(ScriptedProvider())) as alice:
        answered = await alice.post("/ag-ui", body)

    assert answered.status == 422
    assert words in answered.json["error"]["message"]


async def test_a_question_reaches_the_front_end_with_all_that_an_answer_needs() -> None:
    token = Token(name="person", secret="person-secret-0123", may_approve=True)
    provider = ScriptedProvider(answer(call("double", {"number": 4})), "Eight.")
    agent = Agent(provider, tools=[double], hooks=[Guard()])
    async with serving(agent, tokens=[token]) as known:
        person = Caller(known.app, token.secret)
        async with person.stream("POST", "/ag-ui", asked()) as stream:
            while b"approval_requested" not in (frame := await stream.frame()):
                pass
            value = json.loads(frame.removeprefix(b"data: "))["value"]
            place = f"/sessions/{value['session_id']}/approvals/{value['approval_id']}"
            answered = await person.post(place, {"option": value["options"][0]})
            events = checked(await stream.rest())

    assert answered.status == 204
    assert events[-1]["result"] == "Eight."


async def test_a_cancelled_run_says_so() -> None:
    provider = ScriptedProvider(answer("Half", anyio.Event()))
    async with (
        serving(Agent(provider)) as alice,
        alice.stream("POST", "/ag-ui", asked()) as stream,
    ):
        await provider.wait_for_request()
        (session,) = (await alice.get("/sessions")).json["sessions"]
        (turn,) = session["turns"]
        place = f"/sessions/{session['session_id']}/turns/{turn['turn_id']}"
        await alice.post(f"{place}/cancel")
        events = checked(await stream.rest())

    assert events[-1]["outcome"] == {"type": "cancelled"}


def test_a_call_that_did_not_stream_is_written_whole_and_a_gap_is_an_error() -> None:
    encode = AgUiEncoder("t", "r")
    started: JSONObject = {
        "type": "tool_started",
        "id": "c",
        "name": "double",
        "arguments": {"number": 4},
    }
    raw = encode(1, {"type": "turn_started", "session_id": "s", "turn_id": "u"})
    raw += encode(2, started)
    raw += encode(3, {"type": "text_delta", "text": "", "index": 0})
    raw += encode(4, {"type": "gap", "first": 4, "last": 9})

    kinds = [event["type"] for event in checked(raw)]
    assert kinds == [
        "RUN_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "RUN_ERROR",
    ]
