"""What a tool's calls return."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from amplifier.validation.behaviors._stage import Stage, open_stage, skip_unless
from amplifier.validation.behaviors._tool_arguments import STRAY, call_directly, require_no_crash
from amplifier.validation.behaviors._use import calls_of
from amplifier.validation.behaviors.behavior import BehaviorFailed, Suite, expect, require
from amplifier.validation.behaviors.subject import Subject, ToolSamples
from amplifier_sdk.errors import ToolError
from amplifier_sdk.results import ToolResult

TOOL: Final = Suite("tool")

LARGEST_OUTPUT: Final = 1_000_000
"""Characters; far more than any model reads of one result."""


@TOOL.behavior(fix="Return a ToolResult from execute; failures are ToolResult.failure or a raised ToolError.")
async def returns_a_tool_result(subject: Subject) -> None:
    """Every call returns a ToolResult or raises a ToolError."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            returned = await call_directly(tool, arguments)
            if not isinstance(returned, ToolError):
                expect(returned, ToolResult, f"What {tool.name} returns")


@TOOL.behavior(fix="Make the sample a call that can succeed, or mend the tool.")
async def succeeds_with_the_samples_of_its_author(subject: Subject) -> None:
    """The calls that its author gives as samples succeed."""
    skip_unless(subject.told(ToolSamples).arguments, "no sample 'arguments' is given")
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            result = await stage.call(tool.name, arguments)
            require(result.success, f"{tool.name} with {arguments!r:.200}: {result}")


@TOOL.behavior(fix="Catch what a call may raise and say it with ToolError in words that a model can act on.")
async def survives_plain_calls(subject: Subject) -> None:
    """A call that fits the schema succeeds, or fails with an error that its author meant."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            require_no_crash(await stage.call(tool.name, arguments), f"{tool.name} with {arguments!r:.200}")


@TOOL.behavior(fix="Let nothing of one call be left in the way of the next.")
async def runs_again(subject: Subject) -> None:
    """A call that succeeds does so again."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            first = await stage.call(tool.name, arguments)
            again = await stage.call(tool.name, arguments)
            require(again.success or not first.success, f"{tool.name} succeeded once and then: {again}")


async def _results(subject: Subject, stage: Stage) -> list[tuple[str, ToolResult]]:
    """Return what plain calls give, and one call that cannot be right."""
    results = [(tool.name, await stage.call(tool.name, args)) for tool, args in calls_of(subject, stage.tools)]
    for name, calls in subject.told(ToolSamples).failing.items():
        results += [(name, await stage.call(name, arguments)) for arguments in calls]
    return results


@TOOL.behavior(fix="Return texts, numbers, booleans, lists and mappings; turn other objects into them.")
async def returns_json(subject: Subject) -> None:
    """What a call returns can be written as JSON."""
    async with open_stage(subject) as stage:
        for name, result in await _results(subject, stage):
            for part in (result.output, result.error):
                try:
                    json.dumps(part, allow_nan=False)
                except (TypeError, ValueError, RecursionError) as error:
                    raise BehaviorFailed(f"{name} returned {part!r:.200}: {error}") from error


@TOOL.behavior(fix="Return lists instead of tuples and sets, and mappings with text keys only.")
async def returns_what_reads_back(subject: Subject) -> None:
    """What a call returns is the same when it is written as JSON and read again."""
    async with open_stage(subject) as stage:
        for name, result in await _results(subject, stage):
            read = json.loads(json.dumps(result.output, default=repr))
            require(read == result.output and _is_plain(result.output), f"{name} returned {result.output!r:.200}")


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(part) for key, part in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))


@TOOL.behavior(fix="Decode bytes with errors='replace', and keep lone surrogates out of results.")
async def returns_text_that_can_be_stored(subject: Subject) -> None:
    """What a call returns is text that can be written as UTF-8."""
    async with open_stage(subject) as stage:
        for name, result in await _results(subject, stage):
            text = result.get_serialized_output()
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise BehaviorFailed(f"{name} returned a text that cannot be stored: {error}") from error


@TOOL.behavior(fix="Cut long results and say in them how to get the rest.")
async def returns_what_a_model_can_read(subject: Subject) -> None:
    """What a call returns is shorter than a million characters."""
    async with open_stage(subject) as stage:
        for name, result in await _results(subject, stage):
            length = len(result.get_serialized_output())
            require(length <= LARGEST_OUTPUT, f"{name} returned {length} characters")


@TOOL.behavior(fix="Build the output anew in each call, or return a copy.")
async def returns_results_of_its_own(subject: Subject) -> None:
    """Two calls do not return one and the same list or mapping, which a reader might change."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            first, second = await call_directly(tool, dict(arguments)), await call_directly(tool, dict(arguments))
            if isinstance(first, ToolResult) and isinstance(second, ToolResult):
                shared = first.output is second.output and isinstance(first.output, (dict, list))
                require(not shared, f"{tool.name} returned the same {type(first.output).__name__} twice")


@TOOL.behavior(fix="Give every failure a message: ToolResult.failure(text), or raise ToolError(text).")
async def says_why_it_failed(subject: Subject) -> None:
    """A failed result has a message."""
    async with open_stage(subject) as stage:
        for name, result in await _failures(subject, stage):
            message = (result.error or {}).get("message")
            require(isinstance(message, str) and message.strip(), f"{name} failed with the error {result.error!r:.200}")


async def _failures(subject: Subject, stage: Stage) -> list[tuple[str, ToolResult]]:
    """Return what failed calls gave: those of the author, and whichever plain call fails when run directly."""
    results = await _results(subject, stage)
    for tool, arguments in calls_of(subject, stage.tools):
        returned = await call_directly(tool, {**arguments, STRAY: 1})
        results += [(tool.name, returned)] if isinstance(returned, ToolResult) else []
    failures = [(name, result) for name, result in results if not result.success]
    skip_unless(failures, "none of its calls failed; give samples 'failing'")
    return failures


@TOOL.behavior(fix="Say what went wrong in words; a traceback costs tokens and tells of the machine's paths.")
async def fails_without_a_traceback(subject: Subject) -> None:
    """A failed result holds no traceback."""
    async with open_stage(subject) as stage:
        for name, result in await _failures(subject, stage):
            require("Traceback (most recent call last)" not in str(result), f"{name} failed with {str(result)!r:.300}")
