"""Handlers of a hook, the events that they hear, and what they answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

import anyio
import anyio.lowlevel
import attrs

from amplifier.validation.behaviors import _limits
from amplifier.validation.behaviors._cancellation import ends_in_time
from amplifier.validation.behaviors._doubles import RecordingTool
from amplifier.validation.behaviors._orchestrator_scenarios import (
    call_work,
    pausing,
)
from amplifier.validation.behaviors._payloads import (
    NULLABLE,
    OPTIONAL,
    PAYLOADS,
    payload,
)
from amplifier.validation.behaviors.behavior import (
    BehaviorFailed,
    scenario,
    skip_unless,
)
from amplifier.validation.behaviors.harness import (
    Harness,
    RegisteredHandler,
    SessionSetup,
    open_harness,
)
from amplifier.validation.behaviors.subject import HookSamples, Subject
from amplifier_kit.scripted import Step
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.results import HookResult

FIELDS: Final[Mapping[str, object]] = {
    "session_id": "session-1",
    "parent_id": None,
    "turn_id": "turn-1",
    "span_id": "span-1",
    "parent_span_id": None,
    "iteration": 0,
    "timestamp": "2025-01-01T00:00:00+00:00",
}
_STRAYS: Final = ("custom:event", "no-colon", "")


@attrs.frozen(kw_only=True)
class SampleEvent:
    """An event that a handler hears, with its data."""

    handler: RegisteredHandler
    event: str
    data: dict[str, object]

    def __str__(self) -> str:
        return f"{self.handler.name} on {self.event}"

    async def answer(self) -> object:
        try:
            return await self.handler.call(self.event, self.data)
        except (Exception, SystemExit) as error:  # foreign code
            raise BehaviorFailed(
                f"{self.handler.name} raised on {self.event}: {type(error).__name__}: {error}"
            ) from error


@attrs.frozen(kw_only=True)
class HandlerAnswer:
    emission: SampleEvent
    given: object

    @property
    def result(self) -> HookResult | None:
        """The answer as a result; a mapping of its fields is one too."""
        if isinstance(self.given, Mapping):
            if self.given:
                return HookResult(**self.given)
            return None
        if isinstance(self.given, HookResult):
            return self.given
        return None


_Variations = Callable[[dict[str, object]], Iterable[dict[str, object]]]


def _emissions(harness: Harness, limit: int | None = None) -> Iterator[SampleEvent]:
    """Yield what each handler hears: each of its events with the usual data, and with the author's samples."""
    samples = harness.subject.samples_as(HookSamples).payloads
    # a copy: a handler may register others when it is called
    for handler in list(harness.handlers):
        for event in _events_of(handler)[:limit]:
            for data in (PAYLOADS.get(event, {}), *samples.get(event, ())):
                yield SampleEvent(
                    handler=handler, event=event, data={**FIELDS, **payload(data)}
                )


def _events_of(handler: RegisteredHandler) -> list[str]:
    """Return the canonical events that a handler hears, and its own."""
    heard = [str(event) for event in PAYLOADS if fnmatchcase(event, handler.event)]
    # no event stands for a pattern that fits no canonical one
    if heard or _is_pattern(handler):
        return heard
    return [handler.event]


def _is_pattern(handler: RegisteredHandler) -> bool:
    return any(sign in handler.event for sign in "*?[")


async def each_emission(subject: Subject) -> AsyncIterator[Iterable[SampleEvent]]:
    async with open_harness(subject) as harness:
        yield list(_emissions(harness))


@scenario
async def varied(
    subject: Subject, vary: _Variations
) -> AsyncIterator[Iterable[SampleEvent]]:
    """Look at events with the usual data, varied."""
    async with open_harness(
        attrs.evolve(subject, samples=_without_payloads(subject))
    ) as harness:
        yield [
            attrs.evolve(emission, data=data)
            for emission in _emissions(harness)
            for data in vary(emission.data)
        ]


def _without_payloads(subject: Subject) -> HookSamples:
    return attrs.evolve(subject.samples_as(HookSamples), payloads={})


def usual(data: dict[str, object]) -> Iterator[dict[str, object]]:
    yield data


def without_optional_keys(data: dict[str, object]) -> Iterator[dict[str, object]]:
    for key in OPTIONAL.intersection(data):
        yield {name: value for name, value in payload(data).items() if name != key}


def with_nulls(data: dict[str, object]) -> Iterator[dict[str, object]]:
    for key in NULLABLE.intersection(data):
        yield {**payload(data), key: None}


def with_values(*changes: Mapping[str, object]) -> _Variations:
    """Change values, as far as the event has such keys; keys that begin with `x_` are added."""

    def vary(data: dict[str, object]) -> Iterator[dict[str, object]]:
        for change in changes:
            known = {
                key: value
                for key, value in payload(change).items()
                if key in data or key.startswith("x_")
            }
            yield {**payload(data), **known}

    return vary


def with_huge_texts(data: dict[str, object]) -> Iterator[dict[str, object]]:
    """Put a text of a million characters into every event."""
    text = "word " * (_limits.LONG_TEXT // 5)
    yield {**data, "tool_input": {"text": text}, "prompt": text, "response": text}


def with_deep_arguments(data: dict[str, object]) -> Iterator[dict[str, object]]:
    """Give arguments that are nested two thousand levels deep."""
    deep: object = "bottom"
    for _ in range(2_000):
        deep = [deep]
    yield {**data, "tool_input": {"deep": deep}}


async def patterns_without_data(
    subject: Subject,
) -> AsyncIterator[Iterable[SampleEvent]]:
    """Look at events that carry nothing, for handlers that listen to a pattern."""
    async with open_harness(subject) as harness:
        patterns = _patterns(harness)
        yield [
            SampleEvent(handler=each, event=event, data={})
            for each in patterns
            for event in _events_of(each)
        ]


async def patterns_with_strays(
    subject: Subject,
) -> AsyncIterator[Iterable[SampleEvent]]:
    """Look at events that nobody knows, for handlers that listen to a pattern."""
    async with open_harness(subject) as harness:
        yield [
            SampleEvent(handler=each, event=event, data={"anything": 1})
            for each in _patterns(harness)
            for event in _STRAYS
            if fnmatchcase(event, each.event)
        ]


def _patterns(harness: Harness) -> list[RegisteredHandler]:
    found = [handler for handler in harness.handlers if _is_pattern(handler)]
    skip_unless(found, "it listens to no pattern")
    return found


async def answers(subject: Subject) -> AsyncIterator[Iterable[HandlerAnswer]]:
    async with open_harness(subject) as harness:
        yield await _answers(harness)


async def _answers(harness: Harness) -> list[HandlerAnswer]:
    return [
        HandlerAnswer(emission=each, given=await each.answer())
        for each in list(_emissions(harness))
    ]


@scenario
async def results(
    subject: Subject, wanted: Callable[[HookResult], bool], never: str
) -> AsyncIterator[Iterable[tuple[SampleEvent, HookResult]]]:
    """Look at the results that are wanted; `never` says what is missing when there are none."""
    async with open_harness(subject) as harness:
        found = [
            (each.emission, each.result)
            for each in await _answers(harness)
            if each.result is not None and wanted(each.result)
        ]
        skip_unless(found, f"{never}; give samples 'payloads' that make it")
        yield found


def of_action(*actions: str) -> Callable[[HookResult], bool]:
    return lambda result: result.action in actions


def with_message(result: HookResult) -> bool:
    return bool(result.user_message)


async def first_events(subject: Subject) -> AsyncIterator[Iterable[SampleEvent]]:
    async with open_harness(
        attrs.evolve(subject, samples=_without_payloads(subject))
    ) as harness:
        yield list(_emissions(harness, limit=3))


async def two_sessions(subject: Subject) -> AsyncIterator[tuple[list[Harness]]]:
    async with open_harness(subject) as first:
        pass
    async with open_harness(subject) as second:
        pass
    yield ([first, second],)


async def overlapping_sessions(subject: Subject) -> AsyncIterator[tuple[list[Harness]]]:
    async with open_harness(subject) as first, open_harness(subject) as second:
        yield ([first, second],)


@scenario
async def turn(
    subject: Subject, *steps: Step, tool: Callable[[], RecordingTool] = RecordingTool
) -> AsyncIterator[tuple[Harness]]:
    """Run a turn with the hook, whatever it decides about it."""
    setup = SessionSetup(
        steps=steps or (call_work("a"), "Done.", "Done."), tools=(tool,)
    )
    async with open_harness(subject, setup) as harness:
        with suppress(OSError, AmplifierError):
            await harness.turn()
    yield (harness,)


async def cancelled_turn(subject: Subject) -> AsyncIterator[tuple[Harness]]:
    """Cancel a turn while the model answers, or while a handler stops it before."""
    async with open_harness(subject, SessionSetup(steps=(pausing,))) as harness:
        ended = anyio.Event()

        async def run() -> None:
            with suppress(AmplifierError):
                await harness.turn()
            ended.set()

        with ends_in_time("The turn", "it was cancelled"):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                # A handler may deny the prompt, and then nobody is asked: either may come first.
                while not harness.model.requests and not ended.is_set():
                    await anyio.lowlevel.checkpoint()
                await harness.session.cancel(immediate=True)
    yield (harness,)
