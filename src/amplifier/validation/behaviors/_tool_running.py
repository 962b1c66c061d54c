"""What a tool's calls return, and how they run: beside each other, late, cancelled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors._stage import Setting, Stage, open_stage, skip_unless
from amplifier.validation.behaviors._tool_arguments import STRAY, call_directly, require_no_crash
from amplifier.validation.behaviors._use import calls_of
from amplifier.validation.behaviors.behavior import BehaviorFailed, NotApplicable, Suite, expect, require
from amplifier.validation.behaviors.subject import Subject, ToolSamples
from amplifier.validation.leftovers import Leftovers, settle
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import Tool
from amplifier_sdk.errors import ToolError, TurnCancelled
from amplifier_sdk.history import open_calls
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.kit.scripted import answer, call
from amplifier_sdk.results import ToolResult

TOOL: Final = Suite("tool")

AT_ONCE: Final = 10
PATIENCE: Final = 2.0
"""Seconds within which a cancelled call has ended."""
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


@TOOL.behavior(fix="Guard what calls share with a lock, or declare the tool 'exclusive'.")
async def runs_beside_itself(subject: Subject) -> None:
    """Ten calls at once end like one alone."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            alone = await stage.call(tool.name, arguments)
            calls = [ToolCall(id=f"call-{number}", name=tool.name, arguments=arguments) for number in range(AT_ONCE)]
            results = await stage.coordinator.host.run_tools(calls, stage.tools)
            worse = [str(result) for result in results if alone.success and not result.success]
            require(not worse, f"{tool.name} alone succeeded; of {AT_ONCE} at once {len(worse)} failed: {worse[:1]}")


@TOOL.behavior(fix="Let the cancellation pass: never catch it to go on, and await with a shield only to release.")
async def ends_when_its_call_is_cancelled(subject: Subject) -> None:
    """A call that is cancelled, at whatever step, ends within two seconds."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            for steps in range(4):
                await _cancel_call(tool, arguments, steps)


async def _cancel_call(tool: Tool, arguments: JSONObject, steps: int) -> None:
    """Begin a call and cancel it after some steps of the event loop."""
    ended = anyio.Event()

    async def run() -> None:
        try:
            await call_directly(tool, dict(arguments))
        finally:
            ended.set()

    with anyio.move_on_after(PATIENCE) as patience:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    late = patience.cancel_called or not ended.is_set()
    require(not late, f"{tool.name} went on for {PATIENCE:g} s after it was cancelled")


@TOOL.behavior(fix="Put what a call changes back in 'finally', and release its locks.")
async def works_after_a_cancelled_call(subject: Subject) -> None:
    """After a call that was cancelled the next one is like those before."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            before = await stage.call(tool.name, arguments)
            for steps in range(3):
                await _cancel_call(tool, arguments, steps)
            after = await stage.call(tool.name, arguments)
            require(after.success or not before.success, f"{tool.name} after a cancelled call: {after}")


@TOOL.behavior(fix="End in 'finally' what a call started: processes with their children, tasks, open files.")
async def leaves_nothing_after_a_cancelled_call(subject: Subject) -> None:
    """A call that is cancelled leaves no file, thread, task or process behind."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            await stage.call(tool.name, arguments)
            before = Leftovers.baseline()
            for steps in range(4):
                await _cancel_call(tool, arguments, steps)
            left = await settle(before)
            require(not left, f"{tool.name} left {', '.join(left)}")


def _slow(subject: Subject) -> list[tuple[str, Mapping[str, JSONValue]]]:
    slow = subject.told(ToolSamples).slow
    if not slow:
        raise NotApplicable("no sample 'slow' is given")
    return list(slow.items())


@TOOL.behavior(fix="Await in small steps, so that a deadline can end the call.")
async def obeys_its_deadline(subject: Subject) -> None:
    """A slow call ends soon after the session's deadline for tools."""
    calls = _slow(subject)
    async with open_stage(subject, Setting(limits={"tool_timeout": 0.1})) as stage:
        for name, arguments in calls:
            with anyio.move_on_after(0.1 + PATIENCE) as scope:
                result = await stage.call(name, arguments)
                require((result.error or {}).get("type") == "timeout", f"{name} answered {str(result)!r:.200}")
            require(not scope.cancel_called, f"{name} went on for {PATIENCE:g} s after its deadline")


@TOOL.behavior(fix="Let the cancellation of a turn pass through the call.")
async def ends_with_a_cancelled_turn(subject: Subject) -> None:
    """A turn that is cancelled at once during a slow call ends within two seconds with every call answered."""
    for name, arguments in _slow(subject):
        async with open_stage(subject, None, answer(call(name, dict(arguments)))) as stage:
            await _cancel_turn(stage)
            messages = await stage.context.get_messages()
            require(not open_calls(messages), f"The history has a call of {name} without a result")


async def _cancel_turn(stage: Stage) -> None:
    started = anyio.Event()

    def tell(event: str, data: dict[str, object]) -> None:
        started.set()

    async def run() -> None:
        try:
            await stage.turn()
        except TurnCancelled:
            return
        raise BehaviorFailed("The cancelled turn ended as if nothing had happened")

    stage.coordinator.hooks.register("tool:pre", tell)
    with anyio.move_on_after(PATIENCE) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            await stage.session.cancel(immediate=True)
    require(not scope.cancel_called, f"The turn went on for {PATIENCE:g} s after it was cancelled")


@TOOL.behavior(fix="Return what a model can read; the kernel stores it as text beside the call.")
async def serves_a_turn(subject: Subject) -> None:
    """A model that calls it in a turn is given its result."""
    async with open_stage(subject) as stage:
        calls = [(tool.name, arguments) for tool, arguments in calls_of(subject, stage.tools)]
        stage.model.steps += [answer(*(call(name, arguments) for name, arguments in calls)), "Done."]
        text = await stage.turn()
        results = stage.memory.results
    require(text == "Done.", f"The turn answered {text!r:.200}")
    require(len(results) == len(calls), f"{len(calls)} calls have {len(results)} results")
    require(all(isinstance(result, (str, list)) and result for _, result in results), "A result is empty")


@TOOL.behavior(fix="Let execute return what it did; tool:pre, tool:post and tool:error are the kernel's to emit.")
async def is_announced_once(subject: Subject) -> None:
    """Each call is announced by one tool:pre and ends in one tool:post or tool:error."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            stage.heard.clear()
            await stage.call(tool.name, arguments)
            begun, ended = len(stage.all("tool:pre")), len(stage.all("tool:post")) + len(stage.all("tool:error"))
            require((begun, ended) == (1, 1), f"{tool.name}: {begun} tool:pre and {ended} tool:post or tool:error")
