"""What must hold of a tool, of its calls and of what they return."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping

import anyio

from amplifier.validation.behaviors import _limits
from amplifier.validation.behaviors._cancellation import cancel_early, ends_in_time
from amplifier.validation.behaviors._examples import properties_of, required_of
from amplifier.validation.behaviors._tool_scenarios import (
    MountedTool,
    Result,
    SampleCall,
    ToolArgument,
    calls_of,
    require_no_crash,
)
from amplifier.validation.behaviors.behavior import (
    BehaviorFailed,
    expect,
    require,
    skip_unless,
)
from amplifier.validation.behaviors.harness import Harness, SessionSetup, open_harness
from amplifier.validation.behaviors.subject import Subject, ToolSamples
from amplifier.validation.leftovers import Leftovers, settle
from amplifier_kit.scripted import answer, call
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.effects import effects_of
from amplifier_sdk.errors import ToolError, TurnCancelled
from amplifier_sdk.history import open_calls
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of, tool_spec
from amplifier_sdk.results import ToolResult

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TYPED = frozenset(
    {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not", "if"}
)


# -- how a tool introduces itself


def has_a_callable_name(mounted: MountedTool) -> None:
    require(
        _NAME.fullmatch(mounted.tool.name), f"The name is {mounted.tool.name!r:.200}"
    )


def has_its_own_name(mounted: MountedTool) -> None:
    own = mounted.tool.name
    require(mounted.name == own, f"The tool {own!r} is mounted as {mounted.name!r}")


def says_more_than_its_name(mounted: MountedTool) -> None:
    tool = mounted.tool
    said, name = (
        re.sub(r"[\W_]+", "", text).lower() for text in (tool.description, tool.name)
    )
    require(
        said and said != name, f"{tool.name!r} is described as {tool.description!r}"
    )


def is_brief(mounted: MountedTool) -> None:
    length = len(mounted.tool.description)
    require(
        length <= _limits.DESCRIPTION,
        f"The description of {mounted.name!r} has {length} characters",
    )


def offers_a_schema(mounted: MountedTool) -> None:
    offered = getattr(mounted.tool, "input_schema", None)
    if offered is None and callable(
        get_schema := getattr(mounted.tool, "get_schema", None)
    ):
        offered = get_schema()
    schema = expect(
        {} if offered is None else offered, Mapping, f"The schema of {mounted.name!r}"
    )
    require(
        schema,
        f"{mounted.tool.name!r} offers no input_schema, so that a model must guess",
    )


def has_a_valid_schema(mounted: MountedTool) -> None:
    ArgumentSchema(mounted.schema, mounted.tool.name).compile()


def takes_an_object(mounted: MountedTool) -> None:
    kind = mounted.schema.get("type")
    require(kind == "object", f"The schema of {mounted.name!r} has the type {kind!r}")


def has_a_json_schema(mounted: MountedTool) -> None:
    read = json.loads(json.dumps(mounted.schema, allow_nan=False))
    require(
        read == mounted.schema,
        f"The schema of {mounted.name!r} reads back as something else",
    )


async def keeps_its_schemas(harness: Harness) -> None:
    before = {
        name: copy.deepcopy(dict(schema_of(tool)))
        for name, tool in harness.tools.items()
    }
    harness.model.steps.append("Done.")
    await harness.turn()
    for made in calls_of(harness):
        await made.run()
    for name, tool in harness.tools.items():
        require(
            dict(schema_of(tool)) == before[name], f"The schema of {name!r} changed"
        )


def refers_to_itself_alone(mounted: MountedTool) -> None:
    foreign = [
        reference
        for reference in _references(mounted.schema)
        if not reference.startswith("#")
    ]
    require(
        not foreign, f"The schema of {mounted.name!r} refers to {', '.join(foreign)}"
    )


def _references(value: JSONValue) -> Iterator[str]:
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _references(part)


def has_a_modest_schema(mounted: MountedTool) -> None:
    size = len(json.dumps(dict(mounted.schema)))
    require(
        size <= _limits.SCHEMA,
        f"The schema of {mounted.name!r} takes {size} characters",
    )


def are_described(arguments: list[ToolArgument]) -> None:
    bare = [str(each) for each in arguments if not each.schema.get("description")]
    require(not bare, f"Without a description: {', '.join(bare)}")


def are_typed(arguments: list[ToolArgument]) -> None:
    bare = [str(each) for each in arguments if not _TYPED & set(each.schema)]
    require(not bare, f"Without a type: {', '.join(bare)}")


def have_fitting_defaults(arguments: list[ToolArgument]) -> None:
    defaults = [each for each in arguments if "default" in each.schema]
    skip_unless(defaults, "none of its arguments has a default")
    for each in defaults:
        wrapped = ArgumentSchema(
            {"type": "object", "properties": {each.name: each.schema}}, each.tool
        )
        problem = wrapped.problem({each.name: each.schema["default"]})
        require(problem is None, f"The default of {each} does not fit: {problem}")


def describes_what_it_requires(mounted: MountedTool) -> None:
    described = properties_of(mounted.schema)
    missing = [name for name in required_of(mounted.schema) if name not in described]
    require(
        not missing,
        f"{mounted.name!r} requires {', '.join(missing)} and does not describe it",
    )


def offers_one_schema(harness: Harness) -> None:
    tools = harness.tools.values()
    both = [
        tool
        for tool in tools
        if hasattr(tool, "get_schema") and hasattr(tool, "input_schema")
    ]
    skip_unless(both, "it has one spelling of the schema")
    for tool in both:
        offered: object = getattr(tool, "get_schema", dict)()
        require(
            offered == getattr(tool, "input_schema", None),
            f"{tool.name!r} offers two different schemas",
        )


def fits_its_schema(call: SampleCall) -> None:
    problem = ArgumentSchema(schema_of(call.tool), call.tool.name).problem(
        call.arguments
    )
    require(problem is None, f"{call.arguments!r:.200}: {problem}")


def has_a_boolean_exclusive(mounted: MountedTool) -> None:
    value = getattr(mounted.tool, "exclusive", False)
    require(isinstance(value, bool), f"'exclusive' of {mounted.name!r} is {value!r}")


def declares_its_effects(mounted: MountedTool) -> None:
    declared = getattr(mounted.tool, "effects", None)
    read_only = getattr(mounted.tool, "read_only", None)
    effects = effects_of(mounted.tool)
    require(
        declared is None or effects is not None,
        f"'effects' of {mounted.name!r} are {declared!r}",
    )
    require(
        read_only is None or isinstance(read_only, bool),
        f"'read_only' of {mounted.name!r} is {read_only!r}",
    )
    changing = sorted((effects or frozenset()) & {"write", "exec"})
    require(
        not (read_only and changing),
        f"{mounted.name!r} is 'read_only' and has the effects {changing}",
    )


def can_be_shown(mounted: MountedTool) -> None:
    spec = tool_spec(mounted.tool)
    json.dumps([spec.name, spec.description, dict(spec.parameters)])


# -- what its calls do


async def succeeds(call: SampleCall) -> None:
    skip_unless(
        call.harness.subject.samples_as(ToolSamples).arguments,
        "no sample 'arguments' is given",
    )
    result = await call.run()
    require(result.success, f"{call}: {result}")


async def survives(call: SampleCall) -> None:
    require_no_crash(await call.run(), call)


async def fails(call: SampleCall) -> None:
    result = await call.run()
    require(not result.success, f"{call} succeeded")
    require_no_crash(result, call)


async def fails_naming_the_argument(call: SampleCall) -> None:
    result = await call.run()
    named = not result.success and call.varied in str(result)
    require(named, f"{call} answered {str(result)!r:.300}")


async def leaves_its_arguments(call: SampleCall) -> None:
    given = copy.deepcopy(call.arguments)
    await call.run_directly(given)
    require(
        given == call.arguments,
        f"{call.tool.name} was given {call.arguments!r:.200} and left {given!r:.200}",
    )


async def returns_a_result(call: SampleCall) -> None:
    returned = await call.run_directly()
    if not isinstance(returned, ToolError):
        expect(returned, ToolResult, f"What {call.tool.name} returns")


async def runs_again(call: SampleCall) -> None:
    first, again = await call.run(), await call.run()
    require(
        again.success or not first.success,
        f"{call.tool.name} succeeded once and then: {again}",
    )


async def returns_results_of_its_own(call: SampleCall) -> None:
    first, second = await call.run_directly(), await call.run_directly()
    # of values that cannot change, such as texts, one object may serve twice
    if isinstance(first, ToolResult) and isinstance(second, ToolResult):
        shared = first.output is second.output and isinstance(
            first.output, (dict, list)
        )
        require(
            not shared,
            f"{call.tool.name} returned the same {type(first.output).__name__} twice",
        )


# -- what its calls return


def is_json(seen: Result) -> None:
    for part in (seen.result.output, seen.result.error):
        try:
            json.dumps(part, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise BehaviorFailed(
                f"{seen.tool} returned {part!r:.200}: {error}"
            ) from error


def reads_back(seen: Result) -> None:
    output = seen.result.output
    # what JSON lacks is written anyhow: it reads back as something else, and is shown
    read = json.loads(json.dumps(output, default=repr))
    require(
        read == output and _is_plain(output), f"{seen.tool} returned {output!r:.200}"
    )


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(
            isinstance(key, str) and _is_plain(part) for key, part in value.items()
        )
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))


def can_be_stored(seen: Result) -> None:
    try:
        seen.result.get_serialized_output().encode()
    except UnicodeEncodeError as error:
        raise BehaviorFailed(
            f"{seen.tool} returned a text that cannot be stored: {error}"
        ) from error


def can_be_read(seen: Result) -> None:
    length = len(seen.result.get_serialized_output())
    require(length <= _limits.OUTPUT, f"{seen.tool} returned {length} characters")


def says_why(failure: Result) -> None:
    error = failure.result.error
    message = (error or {}).get("message")
    require(
        isinstance(message, str) and message.strip(),
        f"{failure.tool} failed with the error {error!r:.200}",
    )


def has_no_traceback(failure: Result) -> None:
    text = str(failure.result)
    require(
        "Traceback (most recent call last)" not in text,
        f"{failure.tool} failed with {text!r:.300}",
    )


# -- how its calls run


async def runs_beside_itself(one: SampleCall) -> None:
    alone = await one.run()
    name, harness = one.tool.name, one.harness
    made = [
        ToolCall(id=f"call-{number}", name=name, arguments=one.arguments)
        for number in range(10)
    ]
    results = await harness.coordinator.host.run_tools(made, harness.tools)
    worse = [str(result) for result in results if alone.success and not result.success]
    require(
        not worse,
        f"{name} alone succeeded; of 10 at once {len(worse)} failed: {worse[:1]}",
    )


async def ends_when_cancelled(call: SampleCall) -> None:
    await cancel_early(call.tool.name, *[call.run_directly] * 4)


async def works_after_a_cancellation(call: SampleCall) -> None:
    before = await call.run()
    await cancel_early(call.tool.name, *[call.run_directly] * 3)
    after = await call.run()
    require(
        after.success or not before.success,
        f"{call.tool.name} after a cancelled call: {after}",
    )


async def leaves_nothing_when_cancelled(call: SampleCall) -> None:
    # once before, since what the first call opens may stay open
    await call.run()
    before = Leftovers.baseline()
    await cancel_early(call.tool.name, *[call.run_directly] * 4)
    left = await settle(before)
    require(not left, f"{call.tool.name} left {', '.join(left)}")


async def ends_at_its_deadline(slow: tuple[Subject, str, JSONObject]) -> None:
    subject, name, arguments = slow
    async with open_harness(
        subject, SessionSetup(limits={"tool_timeout": 0.1})
    ) as harness:
        with ends_in_time(name, "its deadline"):
            result = await harness.call(name, arguments)
            require(
                (result.error or {}).get("type") == "timeout",
                f"{name} answered {str(result)!r:.200}",
            )


async def ends_with_its_turn(slow: tuple[Subject, str, JSONObject]) -> None:
    subject, name, arguments = slow
    async with open_harness(
        subject, SessionSetup(steps=(answer(call(name, arguments)),))
    ) as harness:
        await _cancel_turn(harness)
        messages = await harness.context.get_messages()
        require(
            not open_calls(messages),
            f"The history has a call of {name} without a result",
        )


async def _cancel_turn(harness: Harness) -> None:
    started = anyio.Event()

    def note(event: str, data: dict[str, object]) -> None:
        started.set()

    async def run() -> None:
        try:
            await harness.turn()
        except TurnCancelled:
            return
        raise BehaviorFailed("The cancelled turn ended as if nothing had happened")

    harness.coordinator.hooks.register("tool:pre", note)
    with ends_in_time("The turn", "it was cancelled"):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            await harness.session.cancel(immediate=True)


async def serves_a_turn(harness: Harness) -> None:
    made = [call(each.tool.name, each.arguments) for each in calls_of(harness)]
    harness.model.steps += [answer(*made), "Done."]
    text = await harness.turn()
    results = harness.memory.results
    require(text == "Done.", f"The turn answered {text!r:.200}")
    require(len(results) == len(made), f"{len(made)} calls have {len(results)} results")
    require(
        all(isinstance(result, (str, list)) and result for _, result in results),
        "A result is empty",
    )


async def is_announced_once(call: SampleCall) -> None:
    harness = call.harness
    # events of the mounting are not those of the call
    harness.heard.clear()
    await call.run()
    begun = len(harness.data_of("tool:pre"))
    ended = len(harness.data_of("tool:post")) + len(harness.data_of("tool:error"))
    message = f"{call.tool.name}: {begun} tool:pre and {ended} tool:post or tool:error"
    require((begun, ended) == (1, 1), message)
