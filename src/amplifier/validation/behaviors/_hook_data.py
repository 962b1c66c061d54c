"""What a hook makes of data that it did not expect, and of many events at once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

import anyio

from amplifier.validation.behaviors._cancelling import cancel_after
from amplifier.validation.behaviors._hook_answers import LONGEST_ANSWER, answer_of, events_of, is_glob, payloads_of
from amplifier.validation.behaviors._payloads import NULLABLE, OPTIONAL, PAYLOADS, payload
from amplifier.validation.behaviors._stage import Registered, Stage, open_stage, skip_unless
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import ToolResult

HOOK: Final = Suite("hook")

HUGE: Final = 1_000_000
_STRAYS: Final = ("custom:event", "no-colon", "")


async def _survives(subject: Subject, *changes: Mapping[str, object]) -> None:
    """Call each handler with the usual data and these changes in it, as far as the event has such keys."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in events_of(handler):
                for change in changes:
                    usual = next(payloads_of(subject, event))
                    known = {key: value for key, value in payload(change).items() if key in usual or key[:2] == "x_"}
                    await answer_of(handler, event, {**usual, **known})


@HOOK.behavior(fix="Read keys with data.get in a handler of a pattern: some events carry nothing.")
async def survives_events_without_data(subject: Subject) -> None:
    """An event that carries nothing does not break a handler that listens to a pattern."""
    async with open_stage(subject) as stage:
        for handler in _of_patterns(stage):
            for event in events_of(handler):
                await answer_of(handler, event, {})


def _of_patterns(stage: Stage) -> list[Registered]:
    patterns = [handler for handler in stage.handlers if is_glob(handler)]
    skip_unless(patterns, "it listens to no pattern")
    return patterns


@HOOK.behavior(fix="Read ids and what the payload's type marks as NotRequired with data.get.")
async def survives_missing_keys(subject: Subject) -> None:
    """Keys that an event may come without, such as its ids, may be missing."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in events_of(handler):
                for key in OPTIONAL.intersection(next(payloads_of(subject, event))):
                    data = next(payloads_of(subject, event))
                    del data[key]
                    await answer_of(handler, event, data)


@HOOK.behavior(fix="Let handlers ignore what they do not know.")
async def survives_unknown_keys(subject: Subject) -> None:
    """Keys that nobody knows, with values of any kind, do not break it."""
    await _survives(subject, {"x_unknown": 1, "x_object": object(), "x_nested": {"a": [None, b"bytes"]}})


@HOOK.behavior(fix="Check for None where the payload's type allows it.")
async def survives_null_values(subject: Subject) -> None:
    """Values that may be null, such as the model's name or the usage, are null in some events."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in events_of(handler):
                for key in NULLABLE.intersection(next(payloads_of(subject, event))):
                    await answer_of(handler, event, {**next(payloads_of(subject, event)), key: None})


@HOOK.behavior(fix="Check the type of a tool's arguments and output before they are used: any JSON may stand there.")
async def survives_any_arguments_and_results(subject: Subject) -> None:
    """Tool arguments and outputs of any JSON type do not break it."""
    values: tuple[JSONValue, ...] = (None, 5, -1.5, True, "", "text", [], [{"a": 1}], {"a": {"b": None}})
    arguments = [{"tool_input": dict.fromkeys(("file_path", "command", "x"), value)} for value in values]
    outputs = [ToolResult(output=value) for value in values]
    results = [{"result": output, "tool_result": output} for output in (*outputs, ToolResult(success=False))]
    await _survives(subject, {"tool_input": {}}, *arguments, *results)


@HOOK.behavior(
    fix="Do work that grows with the length of a text once, and linearly; limit what is looked at.", is_timed=True
)
async def survives_huge_values(subject: Subject) -> None:
    """A text of a million characters in the data is handled within a second."""
    text = "word " * (HUGE // 5)
    changes = {"tool_input": {"text": text}, "prompt": text, "response": text}
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in events_of(handler):
                began = time.perf_counter()
                await answer_of(handler, event, {**next(payloads_of(subject, event)), **changes})
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
            for event in events_of(handler):
                await answer_of(handler, event, {**next(payloads_of(subject, event)), "tool_input": {"deep": deep}})


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
                    await answer_of(handler, event, {"anything": 1})


@HOOK.behavior(fix="Guard what calls of a handler share with a lock, and hold it shortly.")
async def answers_at_once_from_many_tasks(subject: Subject) -> None:
    """Twenty events at once are all answered."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in events_of(handler)[:3]:
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(answer_of, handler, event, next(payloads_of(subject, event)))


@HOOK.behavior(fix="Let the cancellation pass: never catch it to go on.", is_timed=True)
async def ends_when_it_is_cancelled(subject: Subject) -> None:
    """A handler that is cancelled, at whatever step, ends within two seconds."""
    async with open_stage(subject) as stage:
        for handler in list(stage.handlers):
            for event in events_of(handler):
                for steps in range(3):
                    call = partial(answer_of, handler, event, next(payloads_of(subject, event)))
                    await cancel_after(steps, call, f"{handler.name} on {event}")


@HOOK.behavior(fix="Answer alike whether the ids of the turn are there or not.")
async def hears_calls_as_the_kernel_sends_them(subject: Subject) -> None:
    """A tool call that it neither denies nor changes keeps its arguments as JSON."""
    async with open_stage(subject) as stage:
        skip_unless([h for h in stage.handlers if fnmatchcase(TOOL_PRE, h.event)], "it does not listen to tool:pre")
        emission = await stage.coordinator.hooks.emit(TOOL_PRE, dict(PAYLOADS[TOOL_PRE]))
        require("tool_input" in emission.data, "tool_input is gone")
        json.dumps(emission.data["tool_input"], allow_nan=False)
