"""What a tool does with the arguments that models really send."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from amplifier.validation.behaviors._examples import properties_of, required_of, types_of
from amplifier.validation.behaviors._stage import Stage, open_stage, skip_unless
from amplifier.validation.behaviors._use import calls_of
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject, ToolSamples
from amplifier_sdk.contracts import Tool
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of
from amplifier_sdk.results import ToolResult

TOOL: Final = Suite("tool")

STRAY: Final = "no_such_argument"
HUGE: Final = 1_000_000
"""Characters of a text as a model may send by mistake."""

_CRASHES: Final = frozenset(
    {
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "IndexError",
        "KeyError",
        "MemoryError",
        "NameError",
        "OverflowError",
        "RecursionError",
        "TypeError",
        "UnboundLocalError",
        "UnicodeDecodeError",
        "UnicodeEncodeError",
        "ValueError",
        "ZeroDivisionError",
        "invalid_result",
    }
)
"""The kinds of failure that no author meant: they tell a model nothing that it could act on."""

_WRONG: Final[Mapping[str, JSONValue]] = {
    "string": 7,
    "integer": "seven",
    "number": "seven",
    "boolean": "perhaps",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}


def require_no_crash(result: ToolResult, what: str) -> None:
    """Go on when a call succeeded, or failed with an error that its author meant."""
    error = result.error or {}
    require(result.success or error.get("type") not in _CRASHES, f"{what}: {error.get('type')}: {error.get('message')}")


async def _try_texts(subject: Subject, text: str, what: str) -> None:
    """Call every tool with this text in the place of each text argument, one at a time."""
    tried = False
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            for name, part in properties_of(schema_of(tool)).items():
                if "string" in types_of(part) and not {"enum", "const", "format", "pattern"} & set(part):
                    tried = True
                    result = await stage.call(tool.name, {**arguments, name: text})
                    require_no_crash(result, f"{tool.name} with {what} as {name!r}")
    skip_unless(tried, "it takes no text")


@TOOL.behavior(fix='Close the schema with "additionalProperties": false, or say there what else is taken.')
async def rejects_unknown_arguments(subject: Subject) -> None:
    """A call with an argument that the schema does not have is a failed result that names it."""
    async with open_stage(subject) as stage:
        closed = [name for name, tool in stage.tools.items() if not _takes_more(schema_of(tool))]
        skip_unless(closed, "its schema says that it takes further arguments")
        for tool, arguments in calls_of(subject, stage.tools):
            if tool.name in closed:
                result = await stage.call(tool.name, {**arguments, STRAY: 1})
                told = not result.success and STRAY in str(result)
                require(told, f"{tool.name} with the argument {STRAY!r} answered {str(result)!r:.300}")


def _takes_more(schema: Mapping[str, JSONValue]) -> bool:
    more = schema.get("additionalProperties")
    return more is True or isinstance(more, Mapping) or "patternProperties" in schema


def _needed(tool: Tool) -> list[str]:
    return required_of(schema_of(tool))


@TOOL.behavior(fix="List under 'required' what the tool cannot do without; give the rest defaults.")
async def survives_an_empty_call(subject: Subject) -> None:
    """A call without arguments succeeds or says what is missing."""
    async with open_stage(subject) as stage:
        for name in stage.tools:
            require_no_crash(await stage.call(name, {}), f"{name} without arguments")


@TOOL.behavior(fix="Give optional arguments a default in the code that runs without them.")
async def works_with_required_arguments_alone(subject: Subject) -> None:
    """A call with the required arguments only does not break it."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            least: JSONObject = {name: arguments[name] for name in _needed(tool) if name in arguments}
            require_no_crash(await stage.call(tool.name, least), f"{tool.name} with {least!r:.200}")


@TOOL.behavior(fix="Give every argument its type in the schema; values of others are then refused before the call.")
async def reports_wrong_types(subject: Subject) -> None:
    """A call with a value of another type than the schema says is a failed result that names the argument."""
    async with _wrong_values(subject) as (stage, calls):
        for tool, arguments, name in calls:
            result = await stage.call(tool.name, arguments)
            told = not result.success and name in str(result)
            require(told, f"{tool.name} with {name}={arguments[name]!r} answered {str(result)!r:.300}")


@TOOL.behavior(fix="Give every argument its type in the schema, or check it before it is used.")
async def survives_wrong_types(subject: Subject) -> None:
    """No value of another type breaks it, whether its schema has refused it or not."""
    values: tuple[JSONValue, ...] = (None, True, -1, 1.5, "text", [], [None], {}, {"a": {}})
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            for name in properties_of(schema_of(tool)):
                for value in values:
                    result = await stage.call(tool.name, {**arguments, name: value})
                    require_no_crash(result, f"{tool.name} with {name}={value!r}")


@asynccontextmanager
async def _wrong_values(subject: Subject) -> AsyncIterator[tuple[Stage, list[tuple[Tool, JSONObject, str]]]]:
    """Yield calls with one value each that is of none of the types its argument may have."""
    async with open_stage(subject) as stage:
        calls: list[tuple[Tool, JSONObject, str]] = []
        for tool, arguments in calls_of(subject, stage.tools):
            for name, part in properties_of(schema_of(tool)).items():
                kinds = types_of(part)
                wrong = next((value for kind, value in _WRONG.items() if kind in kinds), None)
                if wrong is not None and not (isinstance(wrong, str) and "string" in kinds):
                    calls.append((tool, {**arguments, name: wrong}, name))
        skip_unless(calls, "none of its arguments has a type that a value could miss")
        yield stage, calls


@TOOL.behavior(fix="Encode texts with 'surrogatepass' or refuse them with a ToolError.")
async def survives_broken_characters(subject: Subject) -> None:
    """Half of a surrogate pair in a text does not break it."""
    await _try_texts(subject, "broken \ud83d text", "a broken character")


@TOOL.behavior(fix="Refuse NUL characters with a ToolError where the system underneath cannot take them.")
async def survives_null_characters(subject: Subject) -> None:
    """A NUL character in a text does not break it."""
    await _try_texts(subject, "a\x00b", "a NUL character")


@TOOL.behavior(fix="Treat texts as Unicode; say the encoding wherever bytes are written or read.")
async def survives_any_script(subject: Subject) -> None:
    """Texts in any script, with combining, right-to-left and control characters do not break it."""
    await _try_texts(subject, "žluťoučký 漢字 عربى 🙂 \u202e\u0301\x1b[31m\r\n", "other scripts")


@TOOL.behavior(fix="Check for the empty text where one is of no use.")
async def survives_empty_texts(subject: Subject) -> None:
    """An empty text does not break it."""
    await _try_texts(subject, "", "an empty text")


@TOOL.behavior(fix="Limit what is done with long texts, and refuse those beyond the limit with a ToolError.")
async def survives_huge_texts(subject: Subject) -> None:
    """A text of a million characters does not break it."""
    await _try_texts(subject, "x" * HUGE, "a huge text")


@TOOL.behavior(fix="Set minimum and maximum in the schema, or check numbers before they are used.")
async def survives_extreme_numbers(subject: Subject) -> None:
    """Negative numbers, zero and numbers beyond 64 bits do not break it."""
    numbers: tuple[JSONValue, ...] = (-1, 0, 2**31, 2**63, 10**30, -(10**30))
    tried = False
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            for name, part in properties_of(schema_of(tool)).items():
                if {"integer", "number"} & types_of(part):
                    tried = True
                    for number in numbers:
                        result = await stage.call(tool.name, {**arguments, name: number})
                        require_no_crash(result, f"{tool.name} with {name}={number}")
    skip_unless(tried, "it takes no numbers")


@TOOL.behavior(fix="Walk nested values with a limit of depth, not by recursion without end.")
async def survives_deep_nesting(subject: Subject) -> None:
    """A value that is nested a hundred levels deep does not break it."""
    deep: JSONValue = "bottom"
    for _ in range(100):
        deep = {"a": [deep]}
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            for name in [*properties_of(schema_of(tool)), STRAY]:
                result = await stage.call(tool.name, {**arguments, name: deep})
                require_no_crash(result, f"{tool.name} with a deep {name!r}")


@TOOL.behavior(fix="Copy what is to be changed.")
async def leaves_its_arguments_alone(subject: Subject) -> None:
    """The arguments are the same after a call as before."""
    async with open_stage(subject) as stage:
        for tool, arguments in calls_of(subject, stage.tools):
            given = copy.deepcopy(arguments)
            await call_directly(tool, given)
            require(given == arguments, f"{tool.name} was given {arguments!r:.200} and left {given!r:.200}")


async def call_directly(tool: Tool, arguments: JSONObject) -> object:
    """Run a tool without the kernel round it; what it raises is its answer."""
    try:
        return await tool.execute(arguments)
    except (Exception, SystemExit) as error:  # foreign code
        return error


@TOOL.behavior(fix="Make 'samples.failing' calls that fit the schema and cannot be done.")
async def fails_with_a_result(subject: Subject) -> None:
    """A call that cannot be done is a failed result with a message, not an exception of some library."""
    async with open_stage(subject) as stage:
        failing = [(name, args) for name, calls in subject.told(ToolSamples).failing.items() for args in calls]
        skip_unless(failing, "no sample 'failing' is given")
        for name, arguments in failing:
            result = await stage.call(name, arguments)
            require(not result.success, f"{name} with {dict(arguments)!r:.200} succeeded")
            require_no_crash(result, f"{name} with {dict(arguments)!r:.200}")
