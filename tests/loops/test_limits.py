"""A turn of each loop ends, whatever the model does, and says at which limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import anyio
import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockTool,
    ScriptedProvider,
    mounting,
)
from amplifier_kit.scripted import ScriptedAnswer, answer, call
from amplifier_sdk import (
    ChatRequest,
    ContextManager,
    Coordinator,
    SessionSpawn,
    TextDelta,
    tool,
)
from amplifier_sdk.errors import LLMError
from amplifier_sdk.history import open_calls
from amplifier_sdk.jsontypes import JSONValue
from tests.loops.parts import LOOPS, open_loop


def memory_of(session: AmplifierSession) -> MockContextManager:
    context = session.coordinator.context
    assert isinstance(context, MockContextManager)
    return context


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("limits", "requests"),
    [({}, 50), ({"iterations": 7}, 7), ({"tool_calls": 3}, 4), ({"tokens": 200}, None)],
    ids=["default", "iterations", "tool_calls", "tokens"],
)
@pytest.mark.parametrize("text", ["So far.", ""], ids=["answers", "says nothing"])
async def test_model_that_calls_for_ever_is_stopped_and_limit_is_told(
    loop: str, limits: Mapping[str, int], requests: int | None, text: str
) -> None:
    provider = ScriptedProvider(answer(text, call("work")), repeat=True)
    session = open_loop(loop, provider, MockTool("work"), limits=limits)
    recorder = EventRecorder.of(session.coordinator.hooks, "orchestrator:complete")
    async with session:
        said = await session.execute("Go")

        end = session.last_turn
        assert end is not None
        (name,) = limits or ["iterations"]
        note = f"[The turn ended early: its limit {name!r} of {limits.get(name, 50)} is reached.]"
        assert said == end.text == (f"{text}\n\n{note}" if text else note)
        assert end.limit == name
        assert open_calls(memory_of(session).messages) == ()
    assert requests is None or len(provider.requests) == requests
    assert [request.tools is None for request in provider.requests[-2:]] == [
        False,
        True,
    ]
    assert recorder.one("*")["status"] == "incomplete"


@pytest.mark.parametrize("loop", LOOPS)
async def test_who_reads_the_turn_reads_the_limit_too(loop: str) -> None:
    provider = ScriptedProvider(answer("So far.", call("work")), repeat=True)
    async with open_loop(
        loop, provider, MockTool("work"), limits={"iterations": 2}
    ) as session:
        async with session.stream("Go") as events:
            texts = [
                event.text async for event in events if isinstance(event, TextDelta)
            ]
        assert session.last_turn is not None
        assert "".join(texts) == f"So far.{session.last_turn.text}"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("text", ["", " \n"], ids=["nothing", "blanks"])
async def test_an_empty_answer_ends_the_turn_at_once_and_says_so(
    loop: str, text: str
) -> None:
    provider = ScriptedProvider(answer(text), repeat=True)
    session = open_loop(loop, provider, MockTool("work"))
    recorder = EventRecorder.of(session.coordinator.hooks)
    async with session:
        assert await session.execute("Go") == text
        assert session.last_turn is not None
        assert session.last_turn.limit is None
    assert len(provider.requests) == 1
    assert recorder.one("orchestrator:complete")["status"] == "empty"
    assert recorder.one("execution:end")["status"] == "empty"


@pytest.mark.parametrize("loop", LOOPS)
async def test_two_thousand_calls_in_one_message_respect_limit(
    loop: str,
) -> None:
    calls = [call("work", id=f"c{number}") for number in range(2_000)]
    work = MockTool("work", "done")
    with anyio.fail_after(20):
        async with open_loop(
            loop, ScriptedProvider(answer(*calls), "End."), work
        ) as session:
            said = await session.execute("Go")

            results = list(memory_of(session).results.values())
    assert work.call_count == 200
    assert (
        results
        == ["done"] * 200
        + ["Error: Not run: the turn's limit of 200 tool calls is reached"] * 1_800
    )
    assert (
        said
        == "End.\n\n[The turn ended early: its limit 'tool_calls' of 200 is reached.]"
    )


@tool
async def delegate(coordinator: Coordinator) -> JSONValue:
    """Let another self do it."""
    spawn = cast("SessionSpawn", coordinator.get_capability("session.spawn"))
    result = await spawn(agent_name="self", instruction="Do it.")
    return result.to_dict()


def delegating(
    loop: str, provider: ScriptedProvider, limits: Mapping[str, int]
) -> AmplifierSession:
    """Make a session whose children have contexts of their own and ask the same provider."""

    async def remember(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> ContextManager:
        return MockContextManager()

    modules: dict[str, object] = {
        "loop": LOOPS[loop],
        "context": remember,
        "provider": mounting(provider),
        "delegate": delegate,
    }
    plan: dict[str, object] = {
        "session": {
            "orchestrator": "loop",
            "context": "context",
            "limits": dict(limits),
        },
        "providers": ["provider"],
        "tools": ["delegate"],
    }
    return AmplifierSession(plan, ModuleLoader(modules=modules))


@pytest.mark.figures  # seconds of work
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("limits", "reported"),
    [
        ({}, "delegation_depth"),
        ({"delegation_depth": 1}, "delegation_depth"),
        ({"delegation_depth": 9, "tool_calls": 4}, "tool_calls"),
    ],
    ids=["default", "one", "calls"],
)
async def test_a_model_that_delegates_to_itself_for_ever_is_stopped(
    loop: str, limits: Mapping[str, int], reported: str
) -> None:
    provider = ScriptedProvider(*[reply] * 200)
    with anyio.fail_after(20):
        async with delegating(loop, provider, {"iterations": 3, **limits}) as session:
            said = await session.execute("Go")

            assert session.spending.children > 0
            assert session.spending.tool_calls <= limits.get("tool_calls", 200)
    texts = [
        message.text for request in provider.requests for message in request.messages
    ]
    assert any(reported in text for text in [said, *texts])
    assert "The turn ended early" in said


async def reply(request: ChatRequest) -> ScriptedAnswer:
    return answer("I shall not.") if request.tools is None else answer(call("delegate"))


FAILURES: Mapping[str, Callable[[], BaseException]] = {
    "vendor": lambda: LLMError("down"),
    "bug": lambda: ValueError("a bug"),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("failure", FAILURES)
async def test_failing_provider_fails_turn_and_never_becomes_answer(
    loop: str, failure: str
) -> None:
    error = FAILURES[failure]()
    session = open_loop(loop, ScriptedProvider(error, "Better."))
    recorder = EventRecorder.of(session.coordinator.hooks)
    async with session:
        with pytest.raises(type(error)):
            await session.execute("Go")
        assert recorder.one("execution:end")["status"] == "error"

        assert await session.execute("Again") == "Better."
