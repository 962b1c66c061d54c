"""What is done with tools, and what comes of it."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Final, TypeAlias

import attrs

from amplifier.validation.behaviors._examples import (
    example_arguments,
    properties_of,
    required_of,
    types_of,
)
from amplifier.validation.behaviors.behavior import (
    Scenario,
    require,
    scenario,
    skip_unless,
)
from amplifier.validation.behaviors.harness import Harness, open_harness
from amplifier.validation.behaviors.subject import Subject, ToolSamples
from amplifier_sdk.contracts import Tool
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of
from amplifier_sdk.results import ToolResult

STRAY: Final = "no_such_argument"

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
"""The kinds of failure that no author meant: they say nothing that a model could act on."""

_ODD_VALUES: Final[Sequence[JSONValue]] = (
    None,
    True,
    -1,
    1.5,
    "text",
    [],
    [None],
    {},
    {"a": {}},
)
_ODD_NUMBERS: Final[Sequence[JSONValue]] = (-1, 0, 2**31, 2**63, 10**30, -(10**30))
_WRONG: Final[Mapping[str, JSONValue]] = {
    "string": 7,
    "integer": "seven",
    "number": "seven",
    "boolean": "perhaps",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}
_CLOSED: Final = frozenset({"enum", "const", "format", "pattern"})
"""The keys of a text argument that takes only some texts."""


@attrs.frozen(kw_only=True)
class MountedTool:
    name: str
    tool: Tool

    @property
    def schema(self) -> Mapping[str, JSONValue]:
        return schema_of(self.tool)


@attrs.frozen(kw_only=True)
class ToolArgument:
    tool: str
    name: str
    schema: Mapping[str, JSONValue]

    def __str__(self) -> str:
        return f"{self.tool}.{self.name}"


@attrs.frozen(kw_only=True)
class SampleCall:
    """A call that can be made; `about` says what is special about it, `varied` which argument is."""

    harness: Harness
    tool: Tool
    arguments: JSONObject
    about: str = ""
    varied: str = ""

    def __str__(self) -> str:
        return f"{self.tool.name} with {self.about or f'{self.arguments!r:.200}'}"

    async def run(self) -> ToolResult:
        """Run it as a turn does."""
        return await self.harness.call(self.tool.name, self.arguments)

    async def run_directly(self, arguments: JSONObject | None = None) -> object:
        """Run it without the kernel round it; what the tool raises is its answer."""
        try:
            return await self.tool.execute(
                dict(self.arguments) if arguments is None else arguments
            )
        except (Exception, SystemExit) as error:  # foreign code
            return error


@attrs.frozen(kw_only=True)
class Result:
    tool: str
    result: ToolResult


def calls_of(harness: Harness) -> Iterator[SampleCall]:
    """Yield a call of each tool: the author's samples, else arguments made up from the schema."""
    samples = harness.subject.samples_as(ToolSamples).arguments
    for name, tool in harness.tools.items():
        for arguments in samples.get(name) or (example_arguments(schema_of(tool)),):
            yield SampleCall(harness=harness, tool=tool, arguments=dict(arguments))


async def each_tool(subject: Subject) -> AsyncIterator[Iterable[MountedTool]]:
    async with open_harness(subject) as harness:
        yield [
            MountedTool(name=name, tool=tool) for name, tool in harness.tools.items()
        ]


async def all_arguments(subject: Subject) -> AsyncIterator[tuple[list[ToolArgument]]]:
    """Look at the arguments of all tools together."""
    async with open_harness(subject) as harness:
        arguments = [
            ToolArgument(tool=tool.name, name=name, schema=schema)
            for tool in harness.tools.values()
            for name, schema in properties_of(schema_of(tool)).items()
        ]
        skip_unless(arguments, "it takes no arguments")
        yield (arguments,)


_Variations: TypeAlias = Callable[[SampleCall], Iterable[SampleCall]]


@scenario
async def calls(
    subject: Subject,
    vary: _Variations = lambda call: (call,),
    unless: str = "it has no tools",
) -> AsyncIterator[Iterable[SampleCall]]:
    """Look at calls of each tool, varied; without any there is nothing to check, for the reason of `unless`."""
    async with open_harness(subject) as harness:
        varied = [each for call in calls_of(harness) for each in vary(call)]
        skip_unless(varied, unless)
        yield varied


def calls_with_text(text: str, about: str) -> Scenario[SampleCall]:
    """Call every tool with this text in the place of each text argument, one at a time."""

    def vary(call: SampleCall) -> Iterator[SampleCall]:
        for name, part in properties_of(schema_of(call.tool)).items():
            if "string" in types_of(part) and not _CLOSED & set(part):
                yield _with(call, name, text, f"{about} as {name!r}")

    return calls(vary, "it takes no text")


def _with(call: SampleCall, name: str, value: JSONValue, about: str = "") -> SampleCall:
    arguments = {**call.arguments, name: value}
    return attrs.evolve(
        call, arguments=arguments, about=about or f"{name}={value!r:.100}", varied=name
    )


def with_stray_argument(call: SampleCall) -> Iterator[SampleCall]:
    schema = schema_of(call.tool)
    more = schema.get("additionalProperties")
    # an open schema takes any argument: there the call would be right
    if not (more is True or isinstance(more, Mapping) or "patternProperties" in schema):
        yield _with(call, STRAY, 1)


def without_arguments(call: SampleCall) -> Iterator[SampleCall]:
    yield attrs.evolve(call, arguments={}, about="no arguments")


def with_required_arguments(call: SampleCall) -> Iterator[SampleCall]:
    names = required_of(schema_of(call.tool))
    given = {name: call.arguments[name] for name in names if name in call.arguments}
    yield attrs.evolve(call, arguments=given)


def with_wrong_types(call: SampleCall) -> Iterator[SampleCall]:
    """Give each argument a value that is of none of its types."""
    for name, part in properties_of(schema_of(call.tool)).items():
        kinds = types_of(part)
        wrong = next((value for kind, value in _WRONG.items() if kind in kinds), None)
        # of an argument that also takes texts every text is a right one
        if wrong is not None and not (isinstance(wrong, str) and "string" in kinds):
            yield _with(call, name, wrong)


def with_odd_values(call: SampleCall) -> Iterator[SampleCall]:
    """Give each argument a value of each JSON type."""
    for name in properties_of(schema_of(call.tool)):
        for value in _ODD_VALUES:
            yield _with(call, name, value)


def with_odd_numbers(call: SampleCall) -> Iterator[SampleCall]:
    for name, part in properties_of(schema_of(call.tool)).items():
        if {"integer", "number"} & types_of(part):
            for number in _ODD_NUMBERS:
                yield _with(call, name, number)


def with_deep_values(call: SampleCall) -> Iterator[SampleCall]:
    """Give each argument, and one that there is not, a value a hundred levels deep."""
    deep: JSONValue = "bottom"
    for _ in range(100):
        deep = {"a": [deep]}
    # the stray one reaches tools whose arguments are all texts and numbers
    for name in [*properties_of(schema_of(call.tool)), STRAY]:
        yield _with(call, name, deep, f"a deep {name!r}")


async def failing_calls(subject: Subject) -> AsyncIterator[Iterable[SampleCall]]:
    async with open_harness(subject) as harness:
        failing = _failing(harness)
        skip_unless(failing, "no sample 'failing' is given")
        yield failing


def _failing(harness: Harness) -> list[SampleCall]:
    samples = harness.subject.samples_as(ToolSamples).failing
    return [
        SampleCall(harness=harness, tool=harness.tools[name], arguments=dict(arguments))
        for name, calls in samples.items()
        for arguments in calls
    ]


async def slow_calls(
    subject: Subject,
) -> AsyncIterator[Iterable[tuple[Subject, str, JSONObject]]]:
    """Look at the calls of which the author says that they last; each is made in a session of its own."""
    slow = subject.samples_as(ToolSamples).slow
    skip_unless(slow, "no sample 'slow' is given")
    yield [(subject, name, dict(arguments)) for name, arguments in slow.items()]


async def each_result(subject: Subject) -> AsyncIterator[Iterable[Result]]:
    """Look at what plain calls give, and those that are to fail."""
    async with open_harness(subject) as harness:
        yield await _results(harness)


async def _results(harness: Harness) -> list[Result]:
    made = [*calls_of(harness), *_failing(harness)]
    return [Result(tool=call.tool.name, result=await call.run()) for call in made]


async def each_failure(subject: Subject) -> AsyncIterator[Iterable[Result]]:
    """Look at what failed calls give: those of the author, and any plain call that fails when it is run directly."""
    async with open_harness(subject) as harness:
        found = await _results(harness)
        # Without the kernel, which refuses it itself: the tool's own refusal is wanted.
        for call in calls_of(harness):
            returned = await _with(call, STRAY, 1).run_directly()
            if isinstance(returned, ToolResult):
                found.append(Result(tool=call.tool.name, result=returned))
        failures = [each for each in found if not each.result.success]
        skip_unless(failures, "none of its calls failed; give samples 'failing'")
        yield failures


def require_no_crash(result: ToolResult, what: object) -> None:
    """Return when a call succeeded, or failed with an error that its author meant."""
    error = result.error or {}
    kind = error.get("type")
    require(
        result.success or kind not in _CRASHES,
        f"{what}: {kind}: {error.get('message')}",
    )
