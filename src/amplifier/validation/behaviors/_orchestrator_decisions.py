"""A loop does what handlers decide: deny, change, add, ask."""

from __future__ import annotations

from typing import Final

from amplifier.validation.behaviors._orchestrator_steps import last_texts, require_closed
from amplifier.validation.behaviors._parts import Person, Worker
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import answer, call
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.results import HookResult

ORCHESTRATOR: Final = Suite("orchestrator")


def _deciding(event: str, *results: HookResult, tool: Worker, person: Person | None = None) -> Setting:
    """Let a handler answer an event, the first times with these results and then with nothing."""
    left = list(results)

    def decide(name: str, data: dict[str, object]) -> HookResult | None:
        return left.pop(0) if left else None

    return Setting(tools=(tool,), handlers={event: decide}, approval=person)


async def _turn(subject: Subject, setting: Setting) -> tuple[Stage, str]:
    steps = (answer(call("work", {"text": "a"})), "Done.")
    async with open_stage(subject, setting, *steps) as stage:
        text = await stage.turn("Do it.")
        await require_closed(stage)
    return stage, text


@ORCHESTRATOR.behavior(fix="Look at what prompt:submit returns: when it is denied, ask nobody and return the reason.")
async def obeys_a_denied_prompt(subject: Subject) -> None:
    """When a handler denies the prompt the model is not asked, and the answer says why."""
    stage, text = await _turn(subject, _deciding("prompt:submit", HookResult.deny("not on Sundays"), tool=Worker()))
    require(not stage.model.requests, "The model was asked")
    require("not on Sundays" in text, f"It returned {text!r:.200}")


@ORCHESTRATOR.behavior(fix="Take the prompt from the data that prompt:submit returns.")
async def uses_a_changed_prompt(subject: Subject) -> None:
    """When a handler changes the prompt the model reads, and the context stores, the changed one."""
    changed = HookResult.modify({"prompt": "Do it gently."})
    stage, _ = await _turn(subject, _deciding("prompt:submit", changed, tool=Worker()))
    require("Do it gently." in last_texts(stage), f"The model read {last_texts(stage)!r:.300}")
    require("Do it." not in last_texts(stage), "The model read the prompt as it was before")


@ORCHESTRATOR.behavior(fix="Run tools through the host or the tools that execute is given: both ask the handlers.")
async def obeys_a_denied_call(subject: Subject) -> None:
    """When a handler denies a call the tool does not run, and the model reads why."""
    tool = Worker()
    stage, text = await _turn(subject, _deciding("tool:pre", HookResult.deny("not that one"), tool=tool))
    require(not tool.inputs, "The denied tool ran")
    require("not that one" in last_texts(stage)[-1], f"The model read last {last_texts(stage)[-1]!r:.300}")
    require(text == "Done.", f"The turn answered {text!r:.200}")


@ORCHESTRATOR.behavior(fix="Run tools with the input that tool:pre returns; the host does.")
async def runs_a_call_as_it_was_changed(subject: Subject) -> None:
    """When a handler changes a call's arguments the tool runs with the changed ones."""
    tool = Worker()
    await _turn(subject, _deciding("tool:pre", HookResult.modify({"tool_input": {"text": "b"}}), tool=tool))
    require(tool.inputs == [{"text": "b"}], f"The tool was called with {tool.inputs!r:.300}")


@ORCHESTRATOR.behavior(fix="Take the result from what tool:post returns; the host does.")
async def withholds_a_denied_result(subject: Subject) -> None:
    """When a handler denies a result the model does not read it."""
    tool = Worker(work=_tell_secret)
    stage, _ = await _turn(subject, _deciding("tool:post", HookResult.deny("it is a secret"), tool=tool))
    require("the secret" not in " ".join(last_texts(stage)), "The model read the withheld result")


async def _tell_secret(text: str) -> str:
    return "the secret"


@ORCHESTRATOR.behavior(fix="Ask through the host with hooks that can ask a person; run the call when they allow it.")
async def runs_a_call_that_a_person_allows(subject: Subject) -> None:
    """When a handler has the person asked and they allow it the call runs."""
    tool, person = Worker(), Person("Allow")
    await _turn(subject, _deciding("tool:pre", HookResult.ask("Run it?"), tool=tool, person=person))
    asked = len(person.questions) == 1 and "Run it?" in person.questions[0]
    require(asked, f"The person was asked {person.questions}")
    require(len(tool.inputs) == 1, f"The tool ran {len(tool.inputs)} times")


@ORCHESTRATOR.behavior(fix="Run tools through the host: what a person denies does not run.")
async def runs_no_call_that_a_person_denies(subject: Subject) -> None:
    """When the person denies a call it does not run."""
    tool, person = Worker(), Person("Deny")
    await _turn(subject, _deciding("tool:pre", HookResult.ask("Run it?"), tool=tool, person=person))
    require(not tool.inputs, "The tool ran although the person denied it")


@ORCHESTRATOR.behavior(fix="Run tools through the host: without a person to ask the answer is no.")
async def runs_no_call_that_nobody_can_allow(subject: Subject) -> None:
    """When the person is to be asked and there is nobody the call does not run."""
    tool = Worker()
    await _turn(subject, _deciding("tool:pre", HookResult.ask("Run it?"), tool=tool))
    require(not tool.inputs, "The tool ran although nobody could be asked")


@ORCHESTRATOR.behavior(fix="Carry out what prompt:submit returns: host.process_hook_result stores what is added.")
async def adds_what_a_handler_adds_to_the_prompt(subject: Subject) -> None:
    """What a handler adds to the prompt the model reads."""
    added = HookResult.inject("It is Sunday.")
    stage, _ = await _turn(subject, _deciding("prompt:submit", added, tool=Worker()))
    first = [message.text for message in stage.model.requests[0].messages]
    require("It is Sunday." in first, f"The model read {first!r:.300}")


@ORCHESTRATOR.behavior(fix="Ask through the host, which adds what a handler of provider:request adds for one request.")
async def adds_what_a_handler_adds_to_one_request(subject: Subject) -> None:
    """What a handler adds to one request the model reads once, and the context does not store."""
    added = HookResult.inject("Be brief.", ephemeral=True)
    stage, _ = await _turn(subject, _deciding("provider:request", added, tool=Worker()))
    read = [[message.text for message in request.messages] for request in stage.model.requests]
    require("Be brief." in read[0] and "Be brief." not in read[1], f"The model read {read!r:.400}")
    require("Be brief." not in str(stage.memory.messages), "The context stored it")


@ORCHESTRATOR.behavior(fix="Carry out what tool:post returns; the host does.")
async def adds_what_a_handler_adds_to_a_result(subject: Subject) -> None:
    """What a handler adds after a call the model reads in the next request."""
    added = HookResult.inject("The file is old.")
    stage, _ = await _turn(subject, _deciding("tool:post", added, tool=Worker()))
    require("The file is old." in last_texts(stage), f"The model read {last_texts(stage)!r:.300}")


@ORCHESTRATOR.behavior(fix="Ask through the host: a request that a handler denies is not made.")
async def makes_no_denied_request(subject: Subject) -> None:
    """When a handler denies a request the model is not asked."""
    setting = _deciding("provider:request", *[HookResult.deny("too late")] * 2, tool=Worker())
    async with open_stage(subject, setting, "Yes.") as stage:
        words = await _answer_or_error(stage)
        require(not stage.model.requests, "The model was asked")
    require("too late" in words, f"The caller was told {words!r:.300}")


async def _answer_or_error(stage: Stage) -> str:
    try:
        return await stage.turn()
    except AmplifierError as error:
        return str(error)
