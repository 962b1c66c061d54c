"""What a hook answers, and what it makes of data that it did not expect."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final, get_args

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors._payloads import NULLABLE, OPTIONAL, PAYLOADS, payload
from amplifier.validation.behaviors._stage import Registered, Stage, open_stage, skip_unless
from amplifier.validation.behaviors.behavior import BehaviorFailed, Suite, require
from amplifier.validation.behaviors.subject import HookSamples, Subject
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookAction, HookResult, InjectionRole, MessageLevel, ToolResult

HOOK: Final = Suite("hook")

LONGEST_ANSWER: Final = 1.0
"""Seconds in which a handler answers; a turn waits for each."""
LARGEST_INJECTION: Final = 10_240
"""Characters that a session takes by default."""
HUGE: Final = 1_000_000
PATIENCE: Final = 2.0
_STRAYS: Final = ("custom:event", "no-colon", "")
_FIELDS: Final[Mapping[str, object]] = {
    "session_id": "session-1",
    "parent_id": None,
    "turn_id": "turn-1",
    "span_id": "span-1",
    "parent_span_id": None,
    "iteration": 0,
    "timestamp": "2025-01-01T00:00:00+00:00",
}


def _events_of(handler: Registered) -> list[str]:
    """Return the canonical events that a handler hears, and its own."""
    heard = [str(event) for event in PAYLOADS if fnmatchcase(event, handler.event)]
    return heard if heard or is_glob(handler) else [handler.event]


def is_glob(handler: Registered) -> bool:
    """Tell whether a handler listens to a pattern."""
    return any(sign in handler.event for sign in "*?[")


def _payloads(subject: Subject, event: str) -> Iterator[dict[str, object]]:
    """Yield what an event may carry: the usual, and the author's samples."""
    for data in (PAYLOADS.get(event, {}), *subject.told(HookSamples).payloads.get(event, ())):
        yield {**_FIELDS, **payload(data)}


async def _answers(subject: Subject, stage: Stage) -> list[tuple[Registered, str, object]]:
    """Return what each handler answers to each payload of each of its events."""
    return [
        (handler, event, await _answer(handler, event, data))
        for handler in list(stage.handlers)
        for event in _events_of(handler)
        for data in _payloads(subject, event)
    ]


async def _answer(handler: Registered, event: str, data: dict[str, object]) -> object:
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


@HOOK.behavior(fix="Answer at once; do what takes long in a task of the module's own (coordinator.own).")
async def answers_soon(subject: Subject) -> None:
    """Each handler answers within a second."""
    async with open_stage(subject) as stage:
        for handler in stage.handlers:
            for event in _events_of(handler):
                began = time.perf_counter()
                with anyio.move_on_after(LONGEST_ANSWER):
                    await _answer(handler, event, next(_payloads(subject, event)))
                took = time.perf_counter() - began
                require(took < LONGEST_ANSWER, f"{handler.name} on {event} took {took:.1f} s")


@HOOK.behavior(fix="Return HookResult.modify with the changed keys; copy what is nested before changing it.")
async def leaves_the_data_alone(subject: Subject) -> None:
    """No handler changes anything in the data that it is given, at any depth."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler):
                for data in _payloads(subject, event):
                    before = payload(data)
                    await _answer(handler, event, data)
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


async def _survives(subject: Subject, *changes: Mapping[str, object]) -> None:
    """Call each handler with the usual data and these changes in it, as far as the event has such keys."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler):
                for change in changes:
                    usual = next(_payloads(subject, event))
                    known = {key: value for key, value in payload(change).items() if key in usual or key[:2] == "x_"}
                    await _answer(handler, event, {**usual, **known})


@HOOK.behavior(fix="Read keys with data.get in a handler of a pattern: some events carry nothing.")
async def survives_events_without_data(subject: Subject) -> None:
    """An event that carries nothing does not break a handler that listens to a pattern."""
    async with open_stage(subject) as stage:
        for handler in _of_patterns(stage):
            for event in _events_of(handler):
                await _answer(handler, event, {})


def _of_patterns(stage: Stage) -> list[Registered]:
    patterns = [handler for handler in stage.handlers if is_glob(handler)]
    skip_unless(patterns, "it listens to no pattern")
    return patterns


@HOOK.behavior(fix="Read ids and what the payload's type marks as NotRequired with data.get.")
async def survives_missing_keys(subject: Subject) -> None:
    """Keys that an event may come without, such as its ids, may be missing."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler):
                for key in OPTIONAL.intersection(next(_payloads(subject, event))):
                    data = next(_payloads(subject, event))
                    del data[key]
                    await _answer(handler, event, data)


@HOOK.behavior(fix="Let handlers ignore what they do not know.")
async def survives_unknown_keys(subject: Subject) -> None:
    """Keys that nobody knows, with values of any kind, do not break it."""
    await _survives(subject, {"x_unknown": 1, "x_object": object(), "x_nested": {"a": [None, b"bytes"]}})


@HOOK.behavior(fix="Check for None where the payload's type allows it.")
async def survives_null_values(subject: Subject) -> None:
    """Values that may be null, such as the model's name or the usage, are null in some events."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler):
                for key in NULLABLE.intersection(next(_payloads(subject, event))):
                    await _answer(handler, event, {**next(_payloads(subject, event)), key: None})


@HOOK.behavior(fix="Check the type of a tool's arguments and output before they are used: any JSON may stand there.")
async def survives_any_arguments_and_results(subject: Subject) -> None:
    """Tool arguments and outputs of any JSON type do not break it."""
    values: tuple[JSONValue, ...] = (None, 5, -1.5, True, "", "text", [], [{"a": 1}], {"a": {"b": None}})
    arguments = [{"tool_input": dict.fromkeys(("file_path", "command", "x"), value)} for value in values]
    outputs = [ToolResult(output=value) for value in values]
    results = [{"result": output, "tool_result": output} for output in (*outputs, ToolResult(success=False))]
    await _survives(subject, {"tool_input": {}}, *arguments, *results)


@HOOK.behavior(fix="Do work that grows with the length of a text once, and linearly; limit what is looked at.")
async def survives_huge_values(subject: Subject) -> None:
    """A text of a million characters in the data is handled within a second."""
    text = "word " * (HUGE // 5)
    changes = {"tool_input": {"text": text}, "prompt": text, "response": text}
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler):
                began = time.perf_counter()
                await _answer(handler, event, {**next(_payloads(subject, event)), **changes})
                took = time.perf_counter() - began
                require(took < LONGEST_ANSWER, f"{handler.name} on {event} took {took:.1f} s for a million characters")


@HOOK.behavior(fix="Walk nested values with a limit of depth, not by recursion without end.")
async def survives_deep_values(subject: Subject) -> None:
    """Arguments that are nested two thousand levels deep do not break it."""
    deep: object = "bottom"
    for _ in range(2_000):
        deep = [deep]
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler):
                await _answer(handler, event, {**next(_payloads(subject, event)), "tool_input": {"deep": deep}})


@HOOK.behavior(fix="Encode texts with errors='replace' or 'backslashreplace' wherever they are written.")
async def survives_broken_characters(subject: Subject) -> None:
    """Half of a surrogate pair, NUL and control characters in texts do not break it."""
    text = "broken \ud83d text \x00 \x1b[31m"
    await _survives(subject, {"tool_input": {"text": text}, "prompt": text, "response": text, "tool_name": text})


@HOOK.behavior(fix="Let a handler of a pattern expect events of other modules.")
async def survives_events_it_does_not_know(subject: Subject) -> None:
    """Events that nobody knows do not break a handler that listens to a pattern."""
    async with open_stage(subject) as stage:
        for handler in _of_patterns(stage):
            for event in _STRAYS:
                if fnmatchcase(event, handler.event):
                    await _answer(handler, event, {"anything": 1})


@HOOK.behavior(fix="Guard what calls of a handler share with a lock, and hold it shortly.")
async def answers_at_once_from_many_tasks(subject: Subject) -> None:
    """Twenty events at once are each answered as one alone."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler)[:3]:
                alone = _read(await _answer(handler, event, next(_payloads(subject, event))))
                seen: list[HookResult | None] = []

                async def run(
                    handler: Registered = handler, event: str = event, seen: list[HookResult | None] = seen
                ) -> None:
                    seen.append(_read(await _answer(handler, event, next(_payloads(subject, event)))))

                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(run)
                require(len(seen) == 20, f"{handler.name} on {event} answered {len(seen)} of 20, {alone!r:.100} alone")


@HOOK.behavior(fix="Let the cancellation pass: never catch it to go on.")
async def ends_when_it_is_cancelled(subject: Subject) -> None:
    """A handler that is cancelled, at whatever step, ends within two seconds and lets the cancellation pass."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in _events_of(handler):
                for steps in range(3):
                    await _cancel(handler, event, next(_payloads(subject, event)), steps)


async def _cancel(handler: Registered, event: str, data: dict[str, object], steps: int) -> None:
    async def run() -> None:
        await _answer(handler, event, data)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            scope.deadline = anyio.current_time() + PATIENCE
            group.cancel_scope.cancel()
    require(not scope.cancel_called, f"{handler.name} on {event} went on for {PATIENCE:g} s after it was cancelled")


@HOOK.behavior(fix="Answer alike whether the ids of the turn are there or not.")
async def hears_calls_as_the_kernel_sends_them(subject: Subject) -> None:
    """A tool call that it neither denies nor changes keeps its arguments as JSON."""
    async with open_stage(subject) as stage:
        skip_unless([h for h in stage.handlers if fnmatchcase(TOOL_PRE, h.event)], "it does not listen to tool:pre")
        emission = await stage.coordinator.hooks.emit(TOOL_PRE, dict(PAYLOADS[TOOL_PRE]))
        require("tool_input" in emission.data, "tool_input is gone")
        json.dumps(emission.data["tool_input"], allow_nan=False)
