"""How a tool's calls run: beside each other, late, cancelled, in a turn."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import anyio

from amplifier.validation.behaviors._cancelling import cancel_after, ends_in_time
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage
from amplifier.validation.behaviors._tool_arguments import call_directly
from amplifier.validation.behaviors._use import calls_of
from amplifier.validation.behaviors.behavior import BehaviorFailed, NotApplicable, Suite, require
from amplifier.validation.behaviors.subject import Subject, ToolSamples
from amplifier.validation.leftovers import Leftovers, settle
from amplifier_kit.scripted import answer, call
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import Tool
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.history import open_calls
from amplifier_sdk.jsontypes import JSONObject, JSONValue

TOOL: Final = Suite("tool")

AT_ONCE: Final = 10


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


@TOOL.behavior(
    fix="Let the cancellation pass: never catch it to go on, and await with a shield only to release.", is_timed=True
)
async def ends_when_its_call_is_cancelled(subject: Subject) -> None:
    """A call that is cancelled, at whatever step, ends within two seconds."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            for steps in range(4):
                await _cancel_call(tool, arguments, steps)


async def _cancel_call(tool: Tool, arguments: JSONObject, steps: int) -> None:
    """Begin a call and cancel it after some steps of the event loop."""
    await cancel_after(steps, partial(call_directly, tool, dict(arguments)), tool.name)


@TOOL.behavior(fix="Put what a call changes back in 'finally', and release its locks.", is_timed=True)
async def works_after_a_cancelled_call(subject: Subject) -> None:
    """After a call that was cancelled the next one is like those before."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            before = await stage.call(tool.name, arguments)
            for steps in range(3):
                await _cancel_call(tool, arguments, steps)
            after = await stage.call(tool.name, arguments)
            require(after.success or not before.success, f"{tool.name} after a cancelled call: {after}")


@TOOL.behavior(
    fix="End in 'finally' what a call started: processes with their children, tasks, open files.", is_timed=True
)
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


@TOOL.behavior(fix="Await in small steps, so that a deadline can end the call.", is_timed=True)
async def obeys_its_deadline(subject: Subject) -> None:
    """A slow call ends soon after the session's deadline for tools."""
    calls = _slow(subject)
    async with open_stage(subject, Setting(limits={"tool_timeout": 0.1})) as stage:
        for name, arguments in calls:
            with ends_in_time(name, "its deadline"):
                result = await stage.call(name, arguments)
                require((result.error or {}).get("type") == "timeout", f"{name} answered {str(result)!r:.200}")


@TOOL.behavior(fix="Let the cancellation of a turn pass through the call.", is_timed=True)
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
    with ends_in_time("The turn", "it was cancelled"):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            await stage.session.cancel(immediate=True)


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
