"""A loop runs the tools that the model calls, and only those that it may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors._orchestrator_steps import last_texts, require_closed, roles
from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._stage import Setting, open_stage
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import Step, answer, call
from amplifier_sdk.errors import ToolError
from amplifier_sdk.events import TOOL_ERROR, TOOL_POST, TOOL_PRE
from amplifier_sdk.results import ToolResult

ORCHESTRATOR: Final = Suite("orchestrator")

ENDLESS: Final = 30
"""Calls in a row of a model that never stops by itself."""


def _calls(*texts: str, tool: str = "work") -> Step:
    return answer(*(call(tool, {"text": text}) for text in texts))


@ORCHESTRATOR.behavior(fix="Run each call of the answer with its arguments.")
async def runs_a_call(subject: Subject) -> None:
    """A tool that the model calls runs once, with the model's arguments."""
    tool = Worker()
    async with open_stage(subject, Setting(tools=(tool,)), _calls("a"), "Done.") as stage:
        text = await stage.turn()
    require(tool.inputs == [{"text": "a"}], f"The tool was called with {tool.inputs!r:.300}")
    require(text == "Done.", f"The turn answered {text!r:.200}")


@ORCHESTRATOR.behavior(fix="Ask the model again with the results until an answer calls no tool.")
async def gives_the_model_the_result(subject: Subject) -> None:
    """After a call the model is asked again and reads the result."""
    async with open_stage(subject, Setting(tools=(Worker(),)), _calls("forty-two"), "Done.") as stage:
        await stage.turn()
        read = last_texts(stage)[-1:]
    require(read == ["forty-two"], f"The model read last {read!r:.300}")


@ORCHESTRATOR.behavior(fix="Store the answer with its calls, then a message of the role 'tool' with the call's id.")
async def stores_results_behind_their_calls(subject: Subject) -> None:
    """Each result is stored behind the answer that called, with the call's id."""
    async with open_stage(subject, Setting(tools=(Worker(),)), _calls("a"), "Done.") as stage:
        await stage.turn()
        made = stage.memory.messages[1].get("tool_calls")
        require(roles(stage) == ["user", "assistant", "tool", "assistant"], f"Stored are {roles(stage)}")
        paired = isinstance(made, list) and made[0].get("id") == stage.memory.results[0][0]
    require(paired, "The result's tool_call_id is not the id of the call")


@ORCHESTRATOR.behavior(fix="Run every call of an answer and store a result for each.")
async def runs_all_calls_of_an_answer(subject: Subject) -> None:
    """All calls of one answer run, and each gets its result."""
    tool = Worker()
    async with open_stage(subject, Setting(tools=(tool,)), _calls("a", "b", "c"), "Done.") as stage:
        await stage.turn()
        texts = [text for _, text in stage.memory.results]
    ran = sorted(str(given.get("text")) for given in tool.inputs)
    require(ran == ["a", "b", "c"] and len(texts) == 3, f"Run were {ran}; stored are {texts}")


@ORCHESTRATOR.behavior(fix="Store the results in the order of the calls, whichever ends first.")
async def keeps_results_in_the_order_of_their_calls(subject: Subject) -> None:
    """Results are stored in the order of the calls, also when a later call ends first."""

    async def work(text: str) -> str:
        for _ in range(20 if text == "slow" else 0):
            await anyio.lowlevel.checkpoint()
        return text

    tool = Worker(work=work)
    async with open_stage(subject, Setting(tools=(tool,)), _calls("slow", "quick"), "Done.") as stage:
        await stage.turn()
        texts = [text for _, text in stage.memory.results]
    require(texts == ["slow", "quick"], f"Stored are {texts}")


@ORCHESTRATOR.behavior(fix="Go on as long as answers call tools, within the session's limits.")
async def runs_calls_round_after_round(subject: Subject) -> None:
    """A turn of several rounds of calls ends with the answer of the last."""
    tool = Worker()
    steps = (_calls("a"), _calls("b"), _calls("c", "d"), "Done.")
    async with open_stage(subject, Setting(tools=(tool,)), *steps) as stage:
        text = await stage.turn()
        await require_closed(stage)
    require(text == "Done." and len(tool.inputs) == 4, f"It answered {text!r:.100} after {len(tool.inputs)} calls")


@ORCHESTRATOR.behavior(fix="Answer a call of an unknown tool with a failed result, and go on.")
async def answers_a_call_of_an_unknown_tool(subject: Subject) -> None:
    """A call of a tool that does not exist is answered with a failure, and the turn goes on."""
    await _fails_and_goes_on(subject, answer(call("nonesuch", {})), Worker(), "nonesuch")


async def _raise_os_error(text: str) -> str:
    raise OSError(f"no disk for {text}")


async def _raise_tool_error(text: str) -> str:
    raise ToolError(f"There is no page {text}")


async def _fail(text: str) -> ToolResult:
    return ToolResult.failure(f"Nothing is called {text}")


@ORCHESTRATOR.behavior(fix="Turn what a tool raises into a failed result, or run it through the host, which does.")
async def survives_a_tool_that_raises(subject: Subject) -> None:
    """What a tool raises is a failed result that the model reads, and the turn goes on."""
    await _fails_and_goes_on(subject, _calls("a"), Worker(work=_raise_os_error), "no disk for a")


@ORCHESTRATOR.behavior(fix="Store the message of a ToolError as the result.")
async def gives_the_model_a_tools_own_error(subject: Subject) -> None:
    """What a tool says with a ToolError the model reads."""
    await _fails_and_goes_on(subject, _calls("a"), Worker(work=_raise_tool_error), "There is no page a")


@ORCHESTRATOR.behavior(fix="Store the text of a failed result: ToolResult.get_serialized_output.")
async def gives_the_model_a_failed_result(subject: Subject) -> None:
    """The message of a failed result the model reads."""
    await _fails_and_goes_on(subject, _calls("a"), Worker(work=_fail), "Nothing is called a")


async def _fails_and_goes_on(subject: Subject, step: Step, tool: Worker, words: str) -> None:
    async with open_stage(subject, Setting(tools=(tool,)), step, "Done.") as stage:
        text = await stage.turn()
        read = last_texts(stage)[-1]
        await require_closed(stage)
    require(text == "Done.", f"The turn answered {text!r:.200}")
    require(words in read, f"The model read last {read!r:.300}")


async def _is_not_run(subject: Subject, steps: Sequence[Step], why: str) -> None:
    tool = Worker()
    async with open_stage(subject, Setting(tools=(tool,)), *steps) as stage:
        await stage.turn()
        await require_closed(stage)
    require(not tool.inputs, f"The tool ran although {why}: {tool.inputs!r:.300}")


@ORCHESTRATOR.behavior(fix="Run tools through the host, or look at ToolCall.problem before a call.")
async def runs_no_call_with_unreadable_arguments(subject: Subject) -> None:
    """A call whose arguments cannot be read is answered with a failure and not run."""
    await _is_not_run(subject, (answer(call("work", '{"text": "a')), "Done."), "its arguments cannot be read")


@ORCHESTRATOR.behavior(fix="Run tools through the host or the tools that execute is given: both check the schema.")
async def runs_no_call_with_wrong_arguments(subject: Subject) -> None:
    """A call whose arguments do not fit the tool's schema is answered with a failure and not run."""
    await _is_not_run(subject, (answer(call("work", {"wrong": 1})), "Done."), "its arguments do not fit")


@ORCHESTRATOR.behavior(fix="Ask through the host: it hands on no calls of an answer that is not complete.")
async def runs_no_call_of_a_cut_answer(subject: Subject) -> None:
    """An answer that was cut at the limit of tokens runs nothing."""
    cut = answer(call("work", {"text": "a"}), finish_reason="length")
    await _is_not_run(subject, (cut, "Done."), "the answer was cut")


@ORCHESTRATOR.behavior(fix="Ask through the host: it hands on no calls of an answer that is not complete.")
async def runs_no_call_of_a_filtered_answer(subject: Subject) -> None:
    """An answer that the vendor's filter stopped runs nothing."""
    filtered = answer(call("work", {"text": "a"}), finish_reason="content_filter")
    await _is_not_run(subject, (filtered, "Done."), "the answer was filtered")


@ORCHESTRATOR.behavior(fix="Count the rounds of a turn and end it at host.limits.iterations.")
async def ends_an_endless_turn(subject: Subject) -> None:
    """A model that calls a tool in every answer is stopped at the session's limit of rounds."""
    steps = [_calls(str(number)) for number in range(ENDLESS)]
    setting = Setting(tools=(Worker(),), limits={"iterations": 4})
    async with open_stage(subject, setting, *steps) as stage:
        await stage.turn()
        asked = len(stage.model.requests)
        await require_closed(stage)
    require(asked <= 5, f"With a limit of 4 rounds the model was asked {asked} times")


@ORCHESTRATOR.behavior(fix="Count the calls of a turn and run no more than host.limits.tool_calls.")
async def ends_a_turn_of_too_many_calls(subject: Subject) -> None:
    """A model that calls many tools at once is stopped at the session's limit of calls, each call answered."""
    tool = Worker()
    setting = Setting(tools=(tool,), limits={"tool_calls": 3})
    steps = (_calls(*map(str, range(ENDLESS))), "Done.")
    async with open_stage(subject, setting, *steps) as stage:
        await stage.turn()
        await require_closed(stage)
    require(len(tool.inputs) <= 3, f"With a limit of 3 calls {len(tool.inputs)} ran")


async def _hear(tool: Worker, subject: Subject, *steps: Step) -> list[str]:
    async with open_stage(subject, Setting(tools=(tool,)), *steps) as stage:
        await stage.turn()
        return [name for name in stage.events if name in (TOOL_PRE, TOOL_POST, TOOL_ERROR)]


@ORCHESTRATOR.behavior(fix="Run tools through the host or the tools that execute is given: both emit tool:* events.")
async def announces_each_call(subject: Subject) -> None:
    """Each call is announced by tool:pre and ended by tool:post, once."""
    heard = await _hear(Worker(), subject, _calls("a"), "Done.")
    require(heard == ["tool:pre", "tool:post"], f"Heard were {heard}")


@ORCHESTRATOR.behavior(fix="Run tools through the host or the tools that execute is given: both emit tool:error.")
async def announces_failed_calls(subject: Subject) -> None:
    """A call that raises is announced by tool:pre and ended by tool:error, once."""
    heard = await _hear(Worker(work=_raise_os_error), subject, _calls("a"), "Done.")
    require(heard == ["tool:pre", "tool:error"], f"Heard were {heard}")


@ORCHESTRATOR.behavior(fix="Let exceptions that are no tool's pass: they are the caller's.")
async def tells_of_a_failing_provider(subject: Subject) -> None:
    """What the provider raises reaches the caller unchanged."""
    error = OSError("the line went dead")
    async with open_stage(subject, None, error) as stage:
        caught = await _caught(stage.turn)
    require(caught is error, f"The caller got {type(caught).__name__}: {caught}")


@ORCHESTRATOR.behavior(fix="Store an answer and its results together; the kernel closes what an error left open.")
async def leaves_a_valid_history_after_an_error(subject: Subject) -> None:
    """When the provider fails in the middle of a turn every stored call has its result."""
    steps = (_calls("a", "b"), OSError("the line went dead"))
    async with open_stage(subject, Setting(tools=(Worker(),)), *steps) as stage:
        await _caught(stage.turn)
        await require_closed(stage)
        require(len(stage.memory.results) == 2, f"Stored results: {stage.memory.results}")


@ORCHESTRATOR.behavior(fix="Keep no state of a failed turn.")
async def works_after_an_error(subject: Subject) -> None:
    """After a turn that failed the next one is like any other."""
    async with open_stage(subject, None, OSError("the line went dead"), "Back again.") as stage:
        await _caught(stage.turn)
        text = await stage.turn("And now?")
    require(text == "Back again.", f"It returned {text!r:.200}")


async def _caught(step: Callable[[], Awaitable[object]]) -> Exception | None:
    try:
        await step()
    except Exception as error:  # foreign code: what it raises is looked at
        return error
    return None
