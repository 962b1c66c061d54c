"""Turns of a loop: plain, streamed, decided on by handlers, failed and cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel
import attrs

from amplifier.validation.behaviors._cancellation import ends_in_time
from amplifier.validation.behaviors._doubles import (
    ListContext,
    RecordingTool,
    WaitingTool,
)
from amplifier.validation.behaviors.behavior import (
    BehaviorFailed,
    Scenario,
    require,
    scenario,
)
from amplifier.validation.behaviors.harness import Harness, SessionSetup, open_harness
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import ScriptedProvider, Step, answer, call
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.errors import ToolError, TurnCancelled
from amplifier_sdk.history import open_calls
from amplifier_sdk.results import HookResult, ToolResult
from amplifier_sdk.streaming import StreamEvent

LOST_LINE: Final = OSError("the line went dead")

WITH_TOOL: Final = SessionSetup(tools=(RecordingTool,))


@attrs.frozen(kw_only=True)
class TurnsOutcome:
    """What came of the turns of a session, which has ended."""

    harness: Harness
    texts: list[str] = attrs.field(factory=list)
    error: Exception | None = None
    seen: list[StreamEvent] = attrs.field(factory=list)

    @property
    def text(self) -> str:
        """What the last turn answered, or the error's words."""
        if self.texts:
            return self.texts[-1]
        return str(self.error)

    @property
    def memory(self) -> ListContext:
        return self.harness.memory

    @property
    def requests(self) -> list[ChatRequest]:
        return self.harness.model.requests

    @property
    def read(self) -> list[str]:
        """The texts that the model read in the last request."""
        if self.requests:
            return self.read_in(-1)
        return []

    def read_in(self, request: int) -> list[str]:
        return [message.text for message in self.requests[request].messages]

    @property
    def questions(self) -> list[str]:
        if self.harness.person is not None:
            return self.harness.person.questions
        return []

    @property
    def tool(self) -> RecordingTool:
        return self.harness.workers[0]


def require_closed(harness: Harness) -> None:
    """Return when every tool call of the history has its result."""
    made = open_calls(harness.memory.messages)
    require(not made, f"Calls without a result: {[each.name for each in made]}")


@scenario
async def turn(
    subject: Subject,
    *steps: Step,
    prompts: tuple[str, ...] = ("Begin.",),
    setup: SessionSetup = SessionSetup(),
    fails: type[Exception] | None = None,
) -> AsyncIterator[tuple[TurnsOutcome]]:
    """Run turns; of one that raises an error of the class of `fails` there is no text."""
    texts: list[str] = []
    caught: Exception | None = None
    async with open_harness(subject, attrs.evolve(setup, steps=steps)) as harness:
        for prompt in prompts:
            try:
                texts.append(await harness.turn(prompt))
            except Exception as error:  # foreign code: what it raises is compared
                if fails is None or not isinstance(error, fails):
                    raise
                caught = error
        require_closed(harness)
    yield (TurnsOutcome(harness=harness, texts=texts, error=caught),)


@scenario
async def streamed_turn(
    subject: Subject, *steps: Step, setup: SessionSetup = SessionSetup()
) -> AsyncIterator[tuple[TurnsOutcome]]:
    setup = attrs.evolve(setup, steps=steps)
    async with (
        open_harness(subject, setup) as harness,
        harness.session.stream("Begin.") as events,
    ):
        seen = [event async for event in events]
    yield (TurnsOutcome(harness=harness, seen=seen),)


def decided(
    event: str,
    *results: HookResult,
    tool: Callable[[], RecordingTool] = RecordingTool,
    person: str | None = None,
    fails: type[Exception] | None = None,
) -> Scenario[TurnsOutcome]:
    """Run a turn with one tool call, where a handler answers an event with these results."""
    setup = SessionSetup(tools=(tool,), answers={event: results}, approval=person)
    return turn(call_work("a"), "Done.", prompts=("Do it.",), setup=setup, fails=fails)


def call_work(*texts: str) -> Step:
    return answer(*(call("work", {"text": text}) for text in texts))


async def pausing(request: ChatRequest) -> Step:
    """Begin an answer and never end it."""
    return answer("Well, ", anyio.Event(), "yes.")


# -- tools and sessions of one scenario


async def _wait_when_slow(text: str) -> str:
    # steps and no seconds: the other call ends first on any machine
    for _ in range(20 if text == "slow" else 0):
        await anyio.lowlevel.checkpoint()
    return text


async def _report_secret(text: str) -> str:
    return "the secret"


async def _raise_os_error(text: str) -> str:
    raise OSError(f"no disk for {text}")


async def _raise_tool_error(text: str) -> str:
    raise ToolError(f"There is no page {text}")


async def _fail(text: str) -> ToolResult:
    return ToolResult.failure(f"Nothing is called {text}")


slow_tool: Final = partial(RecordingTool, work=_wait_when_slow)
secret_tool: Final = partial(RecordingTool, work=_report_secret)
raising_tool: Final = partial(RecordingTool, work=_raise_os_error)
refusing_tool: Final = partial(RecordingTool, work=_raise_tool_error)
failing_tool: Final = partial(RecordingTool, work=_fail)


async def two_providers(subject: Subject) -> AsyncIterator[tuple[TurnsOutcome]]:
    other = ScriptedProvider("Other.", name="other")
    async with open_harness(subject, SessionSetup(steps=("One.",))) as harness:
        await harness.coordinator.mount("providers", other)
        texts = [await harness.turn()]
    # whichever was asked: the check wants one request in all
    harness.model.requests.extend(other.requests)
    yield (TurnsOutcome(harness=harness, texts=texts),)


async def second_session(subject: Subject) -> AsyncIterator[tuple[TurnsOutcome]]:
    """Run a turn in each of two sessions; look at the second."""
    async with (
        open_harness(subject, SessionSetup(steps=("One.",))) as first,
        open_harness(subject, SessionSetup(steps=("Two.",))) as second,
    ):
        await first.turn("For the first.")
        texts = [await second.turn("For the second.")]
    yield (TurnsOutcome(harness=second, texts=texts),)


# -- cancelled turns


@scenario
async def cancelled_turn(
    subject: Subject, *more: Step
) -> AsyncIterator[tuple[TurnsOutcome]]:
    """Cancel a turn while the model answers; with more steps another one follows."""
    texts: list[str] = []
    async with open_harness(subject, SessionSetup(steps=(pausing, *more))) as harness:
        await _cancel(
            harness,
            harness.model.wait_for_request,
            lambda: harness.session.cancel(immediate=True),
        )
        if more:
            texts.append(await harness.turn("And now?"))
    yield (TurnsOutcome(harness=harness, texts=texts),)


async def _cancel(
    harness: Harness,
    when: Callable[[], Awaitable[object]],
    then: Callable[[], Awaitable[object]],
) -> None:
    """Run a turn, wait for a moment, cancel it, and wait until it has ended as cancelled."""

    async def run() -> None:
        try:
            text = await harness.turn()
        except TurnCancelled:
            return
        raise BehaviorFailed(f"The cancelled turn returned {text!r:.200}")

    with ends_in_time("The turn", "it was cancelled"):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await when()
            await then()
    require_closed(harness)


@scenario
async def cancelled_tools(
    subject: Subject, *texts: str, is_immediate: bool = True
) -> AsyncIterator[tuple[TurnsOutcome]]:
    """Cancel a turn while its tools run; a single one is then released."""
    setup = SessionSetup(steps=(call_work(*texts), "Done."), tools=(WaitingTool,))
    async with open_harness(subject, setup) as harness:
        tool = waiting(harness)

        async def stop() -> None:
            await harness.session.cancel(immediate=is_immediate)
            # of several, one that is let finish could hide one that is not cancelled
            if len(texts) == 1:
                tool.released.set()

        await _cancel(harness, tool.started.wait, stop)
    yield (TurnsOutcome(harness=harness),)


def waiting(harness: Harness) -> WaitingTool:
    """Return the tool beside the loop, which waits."""
    (tool,) = harness.workers
    assert isinstance(tool, WaitingTool)
    return tool


async def abandoned_turn(subject: Subject) -> AsyncIterator[tuple[TurnsOutcome]]:
    """Leave the reading of a turn in the middle."""
    with ends_in_time("The turn", "its reader had left"):
        async with open_harness(subject, SessionSetup(steps=(pausing,))) as harness:
            async with harness.session.stream("Begin.") as events:
                async for _ in events:
                    break
            require_closed(harness)
    yield (TurnsOutcome(harness=harness),)


async def cancelled_caller(subject: Subject) -> AsyncIterator[tuple[TurnsOutcome]]:
    """Cancel the task that runs a turn while a tool runs."""
    setup = SessionSetup(steps=(call_work("a"), "Done."), tools=(WaitingTool,))
    async with open_harness(subject, setup) as harness:
        async with anyio.create_task_group() as group:
            group.start_soon(harness.turn)
            await waiting(harness).started.wait()
            group.cancel_scope.cancel()
        require_closed(harness)
    yield (TurnsOutcome(harness=harness),)
