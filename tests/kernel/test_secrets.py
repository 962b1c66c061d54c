"""Nothing that a session tells holds a secret: no event, no log, no error, however a provider call ends."""

from __future__ import annotations

import json
import traceback
from collections.abc import MutableMapping
from typing import Final

import attrs
import httpx2
import pytest

from amplifier import AmplifierSession
from amplifier.testing import VirtualClock
from amplifier.testing.transport import HttpAnswer, HttpStep, ScriptedTransport, sse
from amplifier_sdk.chat import Degradation
from amplifier_sdk.decorators import provider
from amplifier_sdk.errors import LLMError
from amplifier_sdk.secret import WITHHELD
from amplifier_sdk.streaming import StreamEvent, TurnFinished
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    Recorder,
    answer,
    build_loader,
    build_session,
    mounted_context,
)
from tests.kit.vendors.parrot import DONE, KEY, ParrotProvider

Reports = list[MutableMapping[str, object]]

SAID: Final = f"The key {KEY} is not welcome here"
ANSWER: Final = HttpAnswer(parts=(sse({"say": "hello"}, DONE),))


def refused(status: int) -> HttpAnswer:
    problem = {"error": {"message": SAID, "type": "some_error", "api_key": KEY}}
    return HttpAnswer(
        status=status, headers={"x-echo": SAID}, parts=(json.dumps(problem).encode(),)
    )


ENDS: Final[dict[str, tuple[HttpStep, ...]]] = {
    "answered": (ANSWER,),
    "retried": (refused(429), refused(503), ANSWER),
    "wrong-key": (refused(401),),
    "bad-request": (refused(400),),
    "server-error": (refused(500),) * 3,
    "no-stream": (
        HttpAnswer(headers={"content-type": "text/html"}, parts=(SAID.encode(),)),
    )
    * 3,
    "half-an-answer": (HttpAnswer(parts=(sse({"say": "hel"}),)),) * 3,
    "no-connection": (httpx2.ConnectError(SAID),) * 3,
    "refused-by-the-client": (httpx2.LocalProtocolError(SAID),) * 3,
    "broken-connection": (
        HttpAnswer(parts=(sse({"say": "hel"}), httpx2.ReadError(SAID))),
    )
    * 3,
}


def open_session(*steps: HttpStep) -> AmplifierSession:
    """Make a session that tells all it can of a provider with a key."""

    class Scripted(ParrotProvider):
        transport: httpx2.AsyncBaseTransport | None = ScriptedTransport(*steps)

    plan = {
        "session": {"orchestrator": "loop", "context": "context", "raw": True},
        "providers": [
            {
                "module": "provider-parrot",
                "config": {"api_key": KEY, "raw": True, "max_retries": 2},
            }
        ],
    }
    modules = {
        "loop": EchoLoop(),
        "context": MemoryContext(),
        "provider-parrot": provider(Scripted),
    }
    return AmplifierSession(plan, build_loader(modules))


async def tell(session: AmplifierSession) -> list[object]:
    """Run a turn to whatever end it comes to, and return all that was told of it."""
    recorder = Recorder.of(session.coordinator.hooks)
    read: list[StreamEvent] = []
    reported: list[object] = [recorder.events, read]
    async with session:
        try:
            async with session.stream("hello") as events:
                read += [event async for event in events]
        except LLMError as error:
            reported += [
                str(error),
                repr(error),
                vars(error),
                traceback.format_exception(error),
            ]
        reported += [
            session.status,
            session.last_turn,
            mounted_context(session.coordinator).messages,
        ]
    return reported


@pytest.mark.parametrize("end", ENDS)
def test_no_record_of_a_call_holds_the_provider_s_key(
    end: str, anyio_backend_name: str, reports: Reports
) -> None:
    reported = VirtualClock().run(
        tell, open_session(*ENDS[end]), backend=anyio_backend_name
    )

    logged = [
        traceback.format_exception(entry["exc_info"])  # type: ignore[call-overload]  # what is reported as an error is one
        for entry in reports
        if entry.get("exc_info")
    ]
    assert [
        record for record in (*reported, reports, logged) if KEY in repr(record)
    ] == []
    names = {name for name, _ in reported[0]}  # type: ignore[attr-defined]  # the recorder's pairs
    assert {"session:start", "llm:request", "llm:response", "session:end"} <= names


async def test_plan_that_session_tells_of_is_without_its_secrets() -> None:
    session = open_session(ANSWER)
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        await session.execute("hello")

    config = recorder.one("session:start")["config"]
    assert isinstance(config, dict)
    (entry,) = config["providers"]
    assert entry == {
        "module": "provider-parrot",
        "config": {"api_key": WITHHELD, "raw": True, "max_retries": 2},
    }


async def test_request_events_share_number_and_vendor_id() -> None:
    session = open_session(attrs.evolve(ANSWER, headers={"x-request-id": "req_7"}))
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        await session.execute("hello")

    sent, heard = recorder.one("llm:request"), recorder.one("llm:response")
    assert sent["request_id"] == heard["request_id"] != "req_7"
    assert heard["vendor_request_id"] == "req_7"


async def test_what_answer_lacks_is_told_at_once_and_at_end_of_turn() -> None:
    lost = Degradation(
        requested="json", actual="text", reason="the model has no JSON mode"
    )
    session = build_session(attrs.evolve(answer("well"), degradation=lost), "whole")
    recorder = Recorder.of(session.coordinator.hooks)
    ends: list[StreamEvent] = []
    async with session:
        for _ in range(2):
            async with session.stream("go") as events:
                ends += [
                    event async for event in events if isinstance(event, TurnFinished)
                ]

    assert [data.get("degradation") for data in recorder.data("provider:response")] == [
        lost,
        None,
    ]
    assert [end.degradations for end in ends if isinstance(end, TurnFinished)] == [
        (lost,),
        (),
    ]
