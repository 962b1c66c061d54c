"""The tool calls of a provider's answers."""

from __future__ import annotations

import json
from typing import Final

import attrs

from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._provider_answers import ask, given, setting_of
from amplifier.validation.behaviors._stage import open_stage, skip_unless
from amplifier.validation.behaviors.behavior import Suite, expect, require
from amplifier.validation.behaviors.subject import ProviderSamples, Subject

PROVIDER: Final = Suite("provider")


@PROVIDER.behavior(fix="Read the vendor's calls into ChatResponse.tool_calls and end with the reason 'tool_calls'.")
async def calls_tools(subject: Subject) -> None:
    """When the model calls a tool the answer has the call and the reason tool_calls."""
    response = await ask(subject, given(subject.told(ProviderSamples).calls, "calls"))
    require(response.tool_calls, f"The answer is {response!r:.300}")
    require(response.finish_reason == "tool_calls", f"The reason is {response.finish_reason!r}")


@PROVIDER.behavior(fix="Take the vendor's ids, or make unique ones where it gives none.")
async def gives_every_call_an_id(subject: Subject) -> None:
    """Every call has an id, which no other call of the answer has."""
    response = await ask(subject, given(subject.told(ProviderSamples).calls, "calls"))
    ids = [call.id for call in response.tool_calls or ()]
    require(ids and all(ids) and len(set(ids)) == len(ids), f"The ids are {ids}")


@PROVIDER.behavior(fix="Call only what the request offers.")
async def calls_what_is_offered(subject: Subject) -> None:
    """Every call names a tool that the request offers."""
    case = given(subject.told(ProviderSamples).calls, "calls")
    offered = {tool.name for tool in case.build().tools or ()}
    skip_unless(offered, "the sample 'calls' offers no tools")
    names = [call.name for call in (await ask(subject, case)).tool_calls or ()]
    require(set(names) <= offered, f"Called are {names}, offered {sorted(offered)}")


@PROVIDER.behavior(fix="Read argument texts with amplifier_sdk.arguments.read_arguments.")
async def reads_the_arguments_of_calls(subject: Subject) -> None:
    """Arguments that can be read are an object of plain JSON."""
    response = await ask(subject, given(subject.told(ProviderSamples).calls, "calls"))
    for call in response.tool_calls or ():
        require(call.problem is None, f"The arguments of {call.name!r} have a problem: {call.problem}")
        json.dumps(expect(call.arguments, dict, "The arguments of a call"), allow_nan=False)


@PROVIDER.behavior(fix="Return from parse_tool_calls what the answer's tool_calls are.")
async def reads_its_own_calls(subject: Subject) -> None:
    """What parse_tool_calls reads from its answer are the calls of the answer."""
    case = given(subject.told(ProviderSamples).calls, "calls")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        response = await stage.provider.complete(case.build())
        calls = stage.provider.parse_tool_calls(response)
    require(list(calls) == list(response.tool_calls or ()), f"Read were {calls!r:.300}")


@PROVIDER.behavior(fix="Put unreadable text into raw_arguments and what is wrong into problem: read_arguments tells.")
async def keeps_unreadable_arguments(subject: Subject) -> None:
    """Arguments that cannot be read are kept as text, with what is wrong, and never become an empty object alone."""
    response = await ask(subject, given(subject.told(ProviderSamples).garbles, "garbles"))
    calls = list(response.tool_calls or ())
    require(calls, f"The answer is {response!r:.300}")
    for call in calls:
        told = bool(call.problem) and bool(call.raw_arguments) and not call.arguments
        require(told, f"problem is {call.problem!r}, raw_arguments {call.raw_arguments!r:.200}")


@PROVIDER.behavior(fix="Give the reason 'length' to an answer that the limit of tokens cut off.")
async def says_that_an_answer_is_cut(subject: Subject) -> None:
    """An answer that was cut at the limit of tokens is not complete and says 'length'."""
    response = await ask(subject, given(subject.told(ProviderSamples).is_cut, "is_cut"))
    require(response.finish_reason == "length" and not response.is_complete, f"The reason is {response.finish_reason}")


@PROVIDER.behavior(fix="Give the reason 'length' to an answer that the limit of tokens cut off: nothing of it is run.")
async def lets_nothing_of_a_cut_answer_run(subject: Subject) -> None:
    """In a turn no tool runs from an answer that was cut."""
    case = given(subject.told(ProviderSamples).is_cut, "is_cut")
    tools = tuple(Worker(name=tool.name, input_schema={"type": "object"}) for tool in case.build().tools or ())
    async with open_stage(subject, attrs.evolve(setting_of(case, subject), tools=tools)) as stage:
        host, request = stage.coordinator.host, case.build()
        await stage.context.add_message({"role": "user", "content": case.prompt})
        response = await host.complete(
            stage.provider, lambda *, messages: attrs.evolve(request, messages=messages), context=stage.context
        )
    require(not response.tool_calls, f"The turn would run {response.tool_calls!r:.300}")
