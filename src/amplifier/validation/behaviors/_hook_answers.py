"""What a hook answers: a result that says why, and leaves alone what it was shown."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final, get_args

import anyio

from amplifier.validation.behaviors._payloads import PAYLOADS, payload
from amplifier.validation.behaviors._stage import Registered, Stage, open_stage, skip_unless
from amplifier.validation.behaviors.behavior import BehaviorFailed, Suite, require
from amplifier.validation.behaviors.subject import HookSamples, Subject
from amplifier_sdk.results import HookAction, HookResult, InjectionRole, MessageLevel

HOOK: Final = Suite("hook")

LONGEST_ANSWER: Final = 1.0
"""Seconds in which a handler answers; a turn waits for each."""
LARGEST_INJECTION: Final = 10_240
"""Characters that a session takes by default."""
_FIELDS: Final[Mapping[str, object]] = {
    "session_id": "session-1",
    "parent_id": None,
    "turn_id": "turn-1",
    "span_id": "span-1",
    "parent_span_id": None,
    "iteration": 0,
    "timestamp": "2025-01-01T00:00:00+00:00",
}


def events_of(handler: Registered) -> list[str]:
    """Return the canonical events that a handler hears, and its own."""
    heard = [str(event) for event in PAYLOADS if fnmatchcase(event, handler.event)]
    return heard if heard or is_glob(handler) else [handler.event]


def is_glob(handler: Registered) -> bool:
    """Tell whether a handler listens to a pattern."""
    return any(sign in handler.event for sign in "*?[")


def payloads_of(subject: Subject, event: str) -> Iterator[dict[str, object]]:
    """Yield what an event may carry: the usual, and the author's samples."""
    for data in (PAYLOADS.get(event, {}), *subject.told(HookSamples).payloads.get(event, ())):
        yield {**_FIELDS, **payload(data)}


async def _answers(subject: Subject, stage: Stage) -> list[tuple[Registered, str, object]]:
    """Return what each handler answers to each payload of each of its events."""
    return [
        (handler, event, await answer_of(handler, event, data))
        for handler in list(stage.handlers)
        for event in events_of(handler)
        for data in payloads_of(subject, event)
    ]


async def answer_of(handler: Registered, event: str, data: dict[str, object]) -> object:
    try:
        return await handler.call(event, data)
    except (Exception, SystemExit) as error:  # foreign code
        raise BehaviorFailed(f"{handler.name} raised on {event}: {type(error).__name__}: {error}") from error


def _read(given: object) -> HookResult | None:
    """Return an answer as a result; a mapping of its fields is one too."""
    if isinstance(given, Mapping):
        return HookResult(**given) if given else None
    return given if isinstance(given, HookResult) else None


async def _results(subject: Subject, action: str) -> list[tuple[str, HookResult]]:
    """Return the results of one action with where they come from."""
    async with open_stage(subject) as stage:
        found = [
            (f"{handler.name} on {event}", result)
            for handler, event, given in await _answers(subject, stage)
            if (result := _read(given)) is not None and result.action == action
        ]
    skip_unless(found, f"it never answers {action!r}; give samples 'payloads' that make it")
    return found


@HOOK.behavior(fix="Return a HookResult or None from every path of a handler.")
async def answers_with_a_result(subject: Subject) -> None:
    """To each event that it hears each handler answers with a HookResult or nothing."""
    async with open_stage(subject) as stage:
        for handler, event, given in await _answers(subject, stage):
            good = given is None or isinstance(given, (HookResult, Mapping))
            require(good, f"{handler.name} on {event} answered {given!r:.200}")
            result = _read(given)
            known = result is None or result.action in get_args(HookAction)
            require(known, f"{handler.name} on {event} answered the action {result and result.action!r}")


@HOOK.behavior(fix="Answer at once; do what takes long in a task of the module's own (coordinator.own).", is_timed=True)
async def answers_soon(subject: Subject) -> None:
    """Each handler answers within a second."""
    async with open_stage(subject) as stage:
        for handler in stage.handlers:
            for event in events_of(handler):
                began = time.perf_counter()
                with anyio.move_on_after(LONGEST_ANSWER):
                    await answer_of(handler, event, next(payloads_of(subject, event)))
                took = time.perf_counter() - began
                require(took < LONGEST_ANSWER, f"{handler.name} on {event} took {took:.1f} s")


@HOOK.behavior(fix="Return HookResult.modify with the changed keys; copy what is nested before changing it.")
async def leaves_the_data_alone(subject: Subject) -> None:
    """No handler changes anything in the data that it is given, at any depth."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in events_of(handler):
                for data in payloads_of(subject, event):
                    before = payload(data)
                    await answer_of(handler, event, data)
                    require(data == before, f"{handler.name} on {event} changed its data")


@HOOK.behavior(fix="Give every denial a reason: the model and the log get it.")
async def says_why_it_denies(subject: Subject) -> None:
    """Every denial has a reason."""
    for place, result in await _results(subject, "deny"):
        require((result.reason or "").strip(), f"{place} denies without a reason")


@HOOK.behavior(fix="Give every question a prompt that says what is about to happen.")
async def says_what_it_asks(subject: Subject) -> None:
    """Every question to the person has a text, a deadline and two options at least."""
    for place, result in await _results(subject, "ask_user"):
        require((result.approval_prompt or "").strip(), f"{place} asks without a text")
        options = result.approval_options
        require(options is None or len(options) > 1, f"{place} offers {options}")
        require(result.approval_timeout > 0, f"{place} waits {result.approval_timeout} s")


@HOOK.behavior(fix="Name in 'data' the keys that are changed, as the event has them.")
async def changes_what_the_event_has(subject: Subject) -> None:
    """Every change names keys that its event carries, with values of the same type."""
    for place, result in await _results(subject, "modify"):
        event = place.rpartition(" on ")[2]
        shown = {**_FIELDS, **PAYLOADS.get(event, {})}
        require(result.data, f"{place} changes nothing")
        for key, value in (result.data or {}).items():
            require(key in shown, f"{place} changes {key!r}, which the event does not have")
            fits = _kind(value) == _kind(shown[key]) or shown[key] is None
            require(fits, f"{place} makes {key!r} a {type(value).__name__}")


def _kind(value: object) -> object:
    return Mapping if isinstance(value, Mapping) else type(value)


@HOOK.behavior(fix="Inject a text with one of the roles system, user and assistant.")
async def adds_texts_that_can_be_stored(subject: Subject) -> None:
    """Every text that it adds is not empty, is smaller than a session takes by default, and has a role."""
    for place, result in await _results(subject, "inject_context"):
        length = len(result.context_injection or "")
        require(0 < length <= LARGEST_INJECTION, f"{place} adds a text of {length} characters")
        known = result.context_injection_role in get_args(InjectionRole)
        require(known, f"{place} adds a text with the role {result.context_injection_role!r}")


@HOOK.behavior(fix="Use the levels info, warning and error.")
async def shows_messages_of_a_known_level(subject: Subject) -> None:
    """Every message to the person has one of the levels info, warning and error."""
    async with open_stage(subject) as stage:
        shown = [
            (handler.name, event, result.user_message_level)
            for handler, event, given in await _answers(subject, stage)
            if (result := _read(given)) is not None and result.user_message
        ]
    skip_unless(shown, "it shows no messages; give samples 'payloads' that make it")
    for name, event, level in shown:
        require(level in get_args(MessageLevel), f"{name} on {event} shows a message of the level {level!r}")


@HOOK.behavior(fix="Register with decides=True what denies or asks on other events than tool:pre and prompt:submit.")
async def decides_where_it_denies(subject: Subject) -> None:
    """A handler that denies or asks is registered as one that decides, so that its failure denies as well."""
    async with open_stage(subject) as stage:
        found = [
            (handler, event)
            for handler, event, given in await _answers(subject, stage)
            if (result := _read(given)) is not None and result.action in ("deny", "ask_user")
        ]
    skip_unless(found, "it neither denies nor asks; give samples 'payloads' that make it")
    for handler, event in found:
        decides = event in ("tool:pre", "prompt:submit") if handler.decides is None else handler.decides
        require(decides, f"{handler.name} stops {event}, but would let it pass when it fails")
