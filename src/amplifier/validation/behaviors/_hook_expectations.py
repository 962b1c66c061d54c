"""What must hold of a hook's handlers and of what they answer."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import get_args

import anyio

from amplifier.validation.behaviors import _limits
from amplifier.validation.behaviors._cancellation import cancel_early
from amplifier.validation.behaviors._hook_scenarios import (
    FIELDS,
    HandlerAnswer,
    SampleEvent,
)
from amplifier.validation.behaviors._payloads import PAYLOADS, payload
from amplifier.validation.behaviors.behavior import BehaviorFailed, require, skip_unless
from amplifier.validation.behaviors.harness import Harness
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.errors import did_you_mean
from amplifier_sdk.events import ALL_EVENTS, TOOL_PRE
from amplifier_sdk.loops.events import BASE_EVENTS
from amplifier_sdk.progress import TOOL_OUTPUT, TOOL_PROGRESS
from amplifier_sdk.results import HookAction, HookResult, InjectionRole, MessageLevel

# -- how it listens


def hears_something(harness: Harness) -> None:
    require(harness.handlers, "No handler is registered")


async def hears_known_events(harness: Harness) -> None:
    canonical = (*ALL_EVENTS, *BASE_EVENTS, TOOL_PROGRESS, TOOL_OUTPUT, HOOK_DECIDED)
    known = [*map(str, canonical), *await harness.declared_events()]
    for handler in harness.handlers:
        # An event of a module that is not here cannot be known: only a name that looks
        # like a canonical one is taken for a misspelt one.
        heard = any(
            fnmatchcase(name, handler.event) for name in known
        ) or not _is_canonical(handler.event)
        require(
            heard,
            f"No event is called {handler.event!r}{did_you_mean(handler.event, known)}",
        )


def _is_canonical(event: str) -> bool:
    """Return whether an event's name begins like a canonical one: other names may belong to other modules."""
    return ":" not in event or any(
        name.startswith(event.partition(":")[0][:4]) for name in ALL_EVENTS
    )


def hears_each_event_once(harness: Harness) -> None:
    seen = [(handler.event, handler.name) for handler in harness.handlers]
    twice = sorted(
        {f"{name} for {event}" for event, name in seen if seen.count((event, name)) > 1}
    )
    require(not twice, f"Registered twice: {', '.join(twice)}")


def names_its_handlers(harness: Harness) -> None:
    bare = [
        handler.event
        for handler in harness.handlers
        if not handler.name or "<lambda>" in handler.name
    ]
    require(not bare, f"Without a name: the handlers of {', '.join(bare)}")


def takes_event_and_data(harness: Harness) -> None:
    for handler in harness.handlers:
        try:
            inspect.signature(handler.handler).bind("tool:pre", {})
        except TypeError as error:
            raise BehaviorFailed(
                f"{handler.name} cannot be called with an event and its data: {error}"
            ) from error


def has_whole_priorities(harness: Harness) -> None:
    odd = [
        h.name
        for h in harness.handlers
        if not isinstance(h.priority, int) or isinstance(h.priority, bool)
    ]
    require(not odd, f"With another priority: {', '.join(odd)}")


def have_the_same_handlers(harnesses: list[Harness]) -> None:
    first, second = (
        [(handler.event, handler.name) for handler in harness.handlers]
        for harness in harnesses
    )
    require(first == second, f"First {first}, then {second}")


def have_the_same_registry(harnesses: list[Harness]) -> None:
    first, second = (harness.coordinator.hooks.list_handlers() for harness in harnesses)
    require(first == second, f"The sessions have {first} and {second}")


def raises_nothing(harness: Harness) -> None:
    failed = [handler.name for handler in harness.handlers if handler.failures]
    require(not failed, f"Handlers that raised: {', '.join(failed)}")


async def answers_no_event_of_its_own(harness: Harness) -> None:
    for event in sorted(
        {handler.event for handler in harness.handlers if "*" not in handler.event}
    ):
        harness.heard.clear()
        await harness.coordinator.hooks.emit(
            event, {"prompt": "x", "tool_name": "work", "tool_input": {}}
        )
        times = len(harness.data_of(event))
        require(times == 1, f"One {event} became {times}")


# -- what it answers


def is_a_result(answer: HandlerAnswer) -> None:
    good = answer.given is None or isinstance(answer.given, (HookResult, Mapping))
    require(good, f"{answer.emission} answered {answer.given!r:.200}")
    result = answer.result
    known = result is None or result.action in get_args(HookAction)
    require(
        known, f"{answer.emission} answered the action {result and result.action!r}"
    )


async def answers(emission: SampleEvent) -> None:
    await emission.answer()


async def answers_soon(emission: SampleEvent) -> None:
    began = time.perf_counter()
    with anyio.move_on_after(_limits.ANSWER):
        await emission.answer()
    took = time.perf_counter() - began
    require(took < _limits.ANSWER, f"{emission} took {took:.1f} s")


async def answers_cheaply(emission: SampleEvent) -> None:
    """Measure what it works, which another program on the machine does not change."""
    began = time.process_time()
    await emission.answer()
    took = time.process_time() - began
    require(took < _limits.ANSWER, f"{emission} took {took:.1f} s of processor time")


async def leaves_its_data(emission: SampleEvent) -> None:
    before = payload(emission.data)
    await emission.answer()
    require(emission.data == before, f"{emission} changed its data")


def has_a_reason(denial: tuple[SampleEvent, HookResult]) -> None:
    emission, result = denial
    require((result.reason or "").strip(), f"{emission} denies without a reason")


def has_a_prompt(question: tuple[SampleEvent, HookResult]) -> None:
    emission, result = question
    require((result.approval_prompt or "").strip(), f"{emission} asks without a text")
    options = result.approval_options
    require(options is None or len(options) > 1, f"{emission} offers {options}")
    require(
        result.approval_timeout > 0, f"{emission} waits {result.approval_timeout} s"
    )


def changes_what_is_there(change: tuple[SampleEvent, HookResult]) -> None:
    emission, result = change
    shown = {**FIELDS, **PAYLOADS.get(emission.event, {})}
    require(result.data, f"{emission} changes nothing")
    for key, value in (result.data or {}).items():
        require(
            key in shown, f"{emission} changes {key!r}, which the event does not have"
        )
        # of a value that may be null the event does not show the type
        fits = _kind(value) == _kind(shown[key]) or shown[key] is None
        require(fits, f"{emission} makes {key!r} a {type(value).__name__}")


def _kind(value: object) -> object:
    if isinstance(value, Mapping):
        return Mapping
    return type(value)


def adds_a_text(injection: tuple[SampleEvent, HookResult]) -> None:
    emission, result = injection
    length = len(result.context_injection or "")
    require(
        0 < length <= _limits.INJECTION,
        f"{emission} adds a text of {length} characters",
    )
    role = result.context_injection_role
    require(
        role in get_args(InjectionRole),
        f"{emission} adds a text with the role {role!r}",
    )


def has_a_known_level(message: tuple[SampleEvent, HookResult]) -> None:
    emission, result = message
    level = result.user_message_level
    require(
        level in get_args(MessageLevel),
        f"{emission} shows a message of the level {level!r}",
    )


def is_blocking(decision: tuple[SampleEvent, HookResult]) -> None:
    emission, _ = decision
    decides = emission.handler.decides
    if decides is None:
        # as `Hooks.register` takes it where nothing is said
        decides = emission.event in ("tool:pre", "prompt:submit")
    require(
        decides,
        f"{emission.handler.name} stops {emission.event}, but would let it pass when it fails",
    )


# -- many events at once


async def answers_at_once(emission: SampleEvent) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(emission.answer)


async def ends_when_cancelled(emission: SampleEvent) -> None:
    await cancel_early(str(emission), *[emission.answer] * 3)


async def keeps_arguments(harness: Harness) -> None:
    listens = any(fnmatchcase(TOOL_PRE, handler.event) for handler in harness.handlers)
    skip_unless(listens, "it does not listen to tool:pre")
    # through the registry, which fills in the ids that a direct call lacks
    emission = await harness.coordinator.hooks.emit(TOOL_PRE, dict(PAYLOADS[TOOL_PRE]))
    require("tool_input" in emission.data, "tool_input is gone")
    json.dumps(emission.data["tool_input"], allow_nan=False)
