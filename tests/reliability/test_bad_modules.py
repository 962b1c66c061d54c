"""Handlers and tools that misbehave in every way, at every event: the session lives, and what decides fails closed.

`nox -s bad_modules` tries every way at every event; otherwise a few events stand for all.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Final

import anyio
import pytest
import structlog
from structlog.testing import capture_logs

from amplifier import AmplifierSession
from amplifier.testing import (
    ScriptedProvider,
    answer,
    call,
    create_test_session,
    mounting,
)
from amplifier_module_loop_basic import BasicLoop
from amplifier_sdk import Coordinator, HookResult, JSONValue, ToolResult, tool
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.jsontypes import JSONObject
from tests.reliability.histories import objection

Reports = list[MutableMapping[str, object]]

EVENTS: Final = (
    "session:start",
    "prompt:submit",
    "provider:request",
    "provider:response",
    "tool:pre",
    "tool:post",
    "prompt:complete",
    "orchestrator:complete",
)
DECIDING: Final = ("prompt:submit", "tool:pre")
EVERYWHERE: Final = "AMPLIFIER_BAD_MODULES" in os.environ
DEADLINE: Final = 0.1  # seconds of a deciding handler

pytestmark = pytest.mark.anyio


class Odd(BaseException):
    """Neither an error nor an exit that anybody knows."""


def raises(error: Callable[[], BaseException]) -> Callable[[dict[str, object]], object]:
    def behave(data: dict[str, object]) -> object:
        raise error()

    return behave


def blocks(data: dict[str, object]) -> object:
    threading.Event().wait(0.02)
    return None


def mutates(data: dict[str, object]) -> object:
    given = data.get("tool_input", data)
    if isinstance(given, dict):
        given["name"] = "changed"
    data.clear()
    return None


BEHAVIORS: Final[Mapping[str, Callable[[dict[str, object]], object]]] = {
    "raises": raises(lambda: ValueError("no")),
    "raises-a-group": raises(
        lambda: ExceptionGroup("no", [ValueError("no"), OSError("no")])
    ),
    "raises-base-exception": raises(lambda: Odd("no")),
    "exits": raises(lambda: SystemExit(3)),
    "is-interrupted": raises(KeyboardInterrupt),
    "hangs": lambda data: anyio.sleep_forever(),
    "blocks": blocks,
    "returns-none": lambda data: None,
    "returns-nonsense": lambda data: 42,
    "returns-something-huge": lambda data: HookResult.inject("huge " * 200_000),
    "mutates": mutates,
    "raises-after-its-effect": raises(lambda: RuntimeError("after")),
}
FAILS: Final = {
    "raises",
    "raises-a-group",
    "exits",
    "returns-nonsense",
    "raises-after-its-effect",
}
PASSES_ON: Final[Mapping[str, type[BaseException]]] = {
    "raises-base-exception": Odd,
    "is-interrupted": KeyboardInterrupt,
}


@pytest.fixture(autouse=True)
def reports() -> Iterator[Reports]:
    """What the session reports."""
    was_configured = structlog.is_configured()
    with capture_logs() as logs:
        yield logs
    if not was_configured:
        structlog.reset_defaults()


async def ended(
    session: AmplifierSession, *, hangs: bool, reached: anyio.Event
) -> str | BaseException:
    """Run a turn to its end, whatever that is; one that waits for a handler is cancelled."""
    try:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                if hangs:

                    async def stop() -> None:
                        await reached.wait()
                        await anyio.wait_all_tasks_blocked()
                        await session.cancel(immediate=True)

                    group.start_soon(stop)
                try:
                    return await session.execute("Go.")
                except (Exception, Odd, KeyboardInterrupt) as error:
                    return error
                finally:
                    group.cancel_scope.cancel()
    except TimeoutError as late:
        return late
    raise AssertionError


def cases() -> Iterator[tuple[str, str]]:
    """Every behaviour where handlers decide, and elsewhere too, at one event each unless all are asked for."""
    others = [event for event in EVENTS if event not in DECIDING]
    for number, behavior in enumerate(BEHAVIORS):
        for event in (
            EVENTS if EVERYWHERE else (*DECIDING, others[number % len(others)])
        ):
            yield behavior, event


@pytest.mark.parametrize(
    ("behavior", "event"), [pytest.param(*case, id="-".join(case)) for case in cases()]
)
async def test_a_bad_handler_ends_nothing_but_what_it_decides(
    behavior: str, event: str, reports: Reports
) -> None:
    behave, reached, ran, effects = BEHAVIORS[behavior], anyio.Event(), [], []
    shows_input = []

    @tool
    async def act(name: str) -> str:
        """Act."""
        ran.append(name)
        return f"did {name}"

    async def bad(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        async def handle(event: str, data: dict[str, object]) -> object:
            effects.append(event)
            shows_input.append("tool_input" in data)
            reached.set()
            answered = behave(data)
            return await answered if hasattr(answered, "__await__") else answered

        coordinator.hooks.register(event, handle, name="bad")  # type: ignore[arg-type]  # it answers anything

    provider = ScriptedProvider(
        answer("I act.", call("act", {"name": "one"}, id="c1")),
        "Done.",
        "Later.",
        repeat=True,
    )
    session = create_test_session(
        provider=provider,
        orchestrator=BasicLoop,
        tools=[act],
        hooks=[bad],
        settings={"limits": {"hook_timeout": DEADLINE, "cleanup_timeout": DEADLINE}},
    )
    async with session:
        waits = behavior == "hangs" and event not in DECIDING
        outcome = await ended(session, hangs=waits, reached=reached)
        assert effects

        if behavior in PASSES_ON:
            assert type(outcome) is PASSES_ON[behavior]
        elif waits and event == "orchestrator:complete":
            # the turn has ended, and waits for this no longer
            assert outcome == "Done." or isinstance(outcome, TurnCancelled)
        elif waits:
            assert isinstance(outcome, TurnCancelled)
        else:
            assert isinstance(outcome, str), outcome
        if event == "tool:pre" and behavior not in (
            "blocks",
            "returns-none",
            "returns-something-huge",
        ):
            assert ran == []
        elif event == "prompt:submit" and (behavior in FAILS or behavior == "hangs"):
            assert (ran, provider.requests) == ([], [])
        assert set(ran) <= {"one"}
        reported = [entry for entry in reports if entry["event"] == "hook.failed"]
        # its own copy of the data it may clear
        changes_view = behavior == "mutates" and any(shows_input)
        assert len(reported) == (
            behavior in FAILS or changes_view or (behavior == "hangs" and not waits)
        )
        assert all(entry["handler"] == "bad" for entry in reported)
        assert objection(await session.coordinator.context.get_messages()) is None

        session.coordinator.hooks.unregister("bad")
        provider.steps[:] = ["Here again."]
        assert await session.execute("And now?") == "Here again."


class BadTool:
    """A tool that does one of the things."""

    name = "bad"
    description = "Is bad."
    input_schema: Mapping[str, JSONValue] = {"type": "object"}

    def __init__(self, behavior: str, reached: anyio.Event) -> None:
        self.behavior, self.reached, self.calls = behavior, reached, 0

    async def execute(self, input: JSONObject, /) -> ToolResult:
        self.calls += 1
        self.reached.set()
        if self.behavior == "returns-something-huge":
            return ToolResult(output="huge " * 2_000_000)
        answered = BEHAVIORS[self.behavior](dict(input))
        return await answered if hasattr(answered, "__await__") else answered  # type: ignore[return-value]  # nonsense


@pytest.mark.parametrize("place", ["alone", "beside another"])
@pytest.mark.parametrize("behavior", BEHAVIORS)
async def test_a_bad_tool_ends_its_own_call_alone(behavior: str, place: str) -> None:
    reached = anyio.Event()
    bad = BadTool(behavior, reached)
    release = anyio.Event()

    @tool
    async def good() -> str:
        """Do it when the other has begun."""
        await reached.wait()
        release.set()
        return "did it"

    calls = [
        call("bad", {"n": 1}, id="b"),
        *([call("good", id="g")] if place != "alone" else []),
    ]
    provider = ScriptedProvider(answer("", *calls), "Done.")
    session = create_test_session(
        provider=provider,
        orchestrator=BasicLoop,
        tools=[mounting(bad), good],
        settings={"limits": {"tool_timeout": DEADLINE}},
    )
    async with session:
        outcome = await ended(session, hangs=False, reached=reached)

        if behavior in PASSES_ON:
            assert type(outcome) is PASSES_ON[behavior]
        else:
            assert outcome == "Done."
        assert bad.calls == 1
        messages = list(await session.coordinator.context.get_messages())
        assert objection(messages) is None
        results = {
            message.get("tool_call_id"): message["content"]
            for message in messages
            if message["role"] == "tool"
        }
        assert set(results) == {one.id for one in calls}
        provider.steps[:] = ["Here again."]
        assert await session.execute("And now?") == "Here again."


async def test_a_tool_that_blocks_its_thread_does_not_stop_the_others() -> None:
    beats, enough = [0], threading.Event()

    @tool
    def block() -> str:
        """Block until the heart has beaten often."""
        return "enough" if enough.wait(10) else "the loop stood still"

    session = create_test_session(
        answer("", call("block")), "Done.", orchestrator=BasicLoop, tools=[block]
    )
    async with session, anyio.create_task_group() as group:

        async def beat() -> None:
            while True:
                await anyio.lowlevel.checkpoint()
                beats[0] += 1
                if beats[0] == 1_000:
                    enough.set()

        group.start_soon(beat)
        await session.execute("Go.")
        group.cancel_scope.cancel()
        messages = await session.coordinator.context.get_messages()

    assert [
        message["content"] for message in messages if message["role"] == "tool"
    ] == ["enough"]
