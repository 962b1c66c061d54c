"""Tools that break what holds of tools: each entry fails at least the behaviour it stands under."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors import Subject, ToolSamples
from amplifier_sdk import Coordinator, ToolResult
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.validation.behaviors.sound import (
    SAMPLE,
    TEXT_SCHEMA,
    TOOL_SAMPLES,
    Echo,
    mounting,
)
from tests.validation.faulty.modules import LEAKED, ONE_CALL, Running, running, subject

__all__ = ["FAULTY"]


def _echo(**changes: object) -> Subject:
    """Make a subject of the sound tool with other attributes."""
    return Subject(
        kind="tool",
        module=mounting(lambda: Echo(**changes)),  # type: ignore[arg-type]
        samples=TOOL_SAMPLES,
    )


def _schema(**changes: JSONValue) -> Subject:
    return _echo(input_schema={**TEXT_SCHEMA, **changes})


def _text(**changes: JSONValue) -> Subject:
    """Make a subject whose one argument is described in another way."""
    described: JSONObject = {
        "type": "string",
        "description": "what to repeat",
        **changes,
    }
    return _schema(
        properties={
            "text": {
                key: value for key, value in described.items() if value is not None
            }
        }
    )


def _open_schema(run: Callable[[JSONValue], object]) -> Subject:
    """Make a tool without types, which does something with its argument."""

    async def execute(input: JSONObject) -> ToolResult:
        run(input.get("text"))
        return ToolResult(output="x")

    schema: JSONObject = {
        "type": "object",
        "properties": {"text": {"description": "anything"}},
    }
    module = mounting(lambda: Running(run=execute, input_schema=schema))
    return Subject(kind="tool", module=module, samples=ONE_CALL)


def _reading(read: Callable[[str], object]) -> Subject:
    """Make a tool that does something with its text and lets through whatever that raises."""

    async def run(input: JSONObject) -> ToolResult:
        read(str(input["text"]))
        return ToolResult(output="x")

    return running(run)


def _returning(output: object, **changes: object) -> Subject:
    async def run(input: JSONObject) -> ToolResult:
        return ToolResult(output=output, **changes)  # type: ignore[arg-type]

    return running(run)


def _shorter_than(limit: int) -> Callable[[str], object]:
    return lambda text: None if len(text) < limit else 1 / 0


class Growing(Echo):
    """A tool whose schema grows with each reading."""

    @property
    def input_schema(self) -> Mapping[str, JSONValue]:
        self.description += "."
        return {**TEXT_SCHEMA, "title": self.description}

    @input_schema.setter
    def input_schema(self, value: Mapping[str, JSONValue]) -> None:
        """Ignore it."""


class TwoSchemas(Echo):
    """A tool that offers two schemas."""

    def get_schema(self) -> Mapping[str, JSONValue]:
        """Offer another."""
        return {"type": "object"}


async def _mount_elsewhere(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> None:
    await coordinator.mount("tools", Echo(), name="repeat")


async def _return_text(input: JSONObject) -> ToolResult:
    return "x"  # type: ignore[return-value]


async def _fail(input: JSONObject) -> ToolResult:
    return ToolResult.failure("No")


async def _crash(input: JSONObject) -> ToolResult:
    raise KeyError("text")


def _every_other_time() -> Subject:
    calls: list[JSONObject] = []

    async def run(input: JSONObject) -> ToolResult:
        calls.append(input)
        return (
            ToolResult(output="x")
            if len(calls) % 2
            else ToolResult.failure("Not again")
        )

    return running(run)


SHARED: Final[JSONObject] = {"text": "shared"}


async def _return_shared(input: JSONObject) -> ToolResult:
    return ToolResult(output=SHARED)


async def _fail_in_silence(input: JSONObject) -> ToolResult:
    return ToolResult(success=False, error={"code": 7})


async def _fail_with_a_traceback(input: JSONObject) -> ToolResult:
    return ToolResult.failure("Traceback (most recent call last):\n  File ...")


def _crowded() -> Subject:
    inside: list[JSONObject] = []

    async def run(input: JSONObject) -> ToolResult:
        inside.append(input)
        try:
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            return (
                ToolResult(output="x")
                if len(inside) == 1
                else ToolResult.failure("Too crowded")
            )
        finally:
            inside.remove(input)

    return running(run)


async def _go_on_regardless(input: JSONObject) -> ToolResult:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.3)
    return ToolResult(output="x")


class Locking(Echo):
    """A tool that keeps its lock when it is cancelled."""

    locked = False

    async def execute(self, input: JSONObject, /) -> ToolResult:
        if self.locked:
            return ToolResult.failure("Locked")
        self.locked = True
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        self.locked = False
        return ToolResult(output="x")


async def _leave_a_file_when_cancelled(input: JSONObject) -> ToolResult:
    file = open(os.devnull)  # noqa: SIM115
    LEAKED.append(file)
    await anyio.lowlevel.checkpoint()
    file.close()
    return ToolResult(output="x")


async def _wait_under_a_shield(input: JSONObject) -> ToolResult:
    if input["text"] == "wait":
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.3)
    return ToolResult(output="x")


async def _change_the_input(input: JSONObject) -> ToolResult:
    input["text"] = "changed"
    return ToolResult(output="x")


async def _emit_by_itself(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    async def run(input: JSONObject) -> ToolResult:
        await coordinator.hooks.emit(
            "tool:pre", {"tool_name": "echo", "tool_input": input}
        )
        return ToolResult(output="x")

    return Running(run=run)


def _depth(value: JSONValue) -> int:
    return 1 + _depth(next(iter(value.values()))[0]) if isinstance(value, dict) else 0


def _not_deeper_than(limit: int) -> Callable[[JSONValue], object]:
    return lambda value: (
        1 / 0 if isinstance(value, dict) and _depth(value) > limit else None
    )


NUMBER: Final[JSONObject] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "description": "a number"}},
}


async def _pack(input: JSONObject) -> ToolResult:
    number = input.get("n", 1)
    assert isinstance(number, int)
    return ToolResult(output=len(number.to_bytes(8, "big")))


def _with(tool: Echo, **attributes: object) -> Echo:
    """Set attributes of a tool, of whatever type."""
    vars(tool).update(attributes)
    return tool


_BAD: Final = {"type": "object", "default": {1, 2}}
_AMBIGUOUS: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "text": {
            "description": "a number, or anything",
            "anyOf": [{"type": "integer"}, {}],
        }
    },
}


NO_MESSAGE: Final = ToolSamples(failing={"echo": (SAMPLE,)})

FAULTY: Final[Mapping[str, Subject]] = {
    "tool.has-a-name-that-vendors-take": _echo(name="repeat a text"),
    "tool.is-mounted-under-its-name": subject(_mount_elsewhere),
    "tool.describes-itself": _echo(description="Echo."),
    "tool.describes-itself-briefly": _echo(description="very " * 300),
    "tool.offers-a-schema": _echo(input_schema={}),
    "tool.offers-a-valid-schema": _schema(properties={"text": {"type": "text"}}),
    "tool.takes-an-object": _echo(
        input_schema={"properties": {"text": {"type": "string"}}}
    ),
    "tool.offers-a-schema-of-plain-json": _schema(examples=({"text": "a"},)),
    "tool.offers-the-same-schema-each-time": Subject(
        kind="tool", module=mounting(Growing), samples=ONE_CALL
    ),
    "tool.offers-a-schema-that-stands-alone": _text(**{"$ref": "other.json#/text"}),
    "tool.offers-a-schema-of-modest-size": _text(
        enum=[f"choice number {n}" for n in range(2_000)]
    ),
    "tool.describes-every-argument": _text(description=None),
    "tool.says-the-type-of-every-argument": _text(type=None),
    "tool.has-defaults-that-fit": _text(default=5),
    "tool.requires-only-what-it-describes": _schema(required=["txt"]),
    "tool.offers-one-schema-in-both-spellings": Subject(
        kind="tool", module=mounting(TwoSchemas)
    ),
    "tool.takes-the-samples-of-its-author": Subject(
        kind="tool",
        module=mounting(Echo),
        samples=ToolSamples(arguments={"echo": ({"txt": "x"},)}),
    ),
    "tool.says-plainly-whether-it-is-exclusive": Subject(
        kind="tool",
        module=mounting(lambda: _with(Echo(), exclusive="yes")),
        samples=ONE_CALL,
    ),
    "tool.says-plainly-what-it-does": Subject(
        kind="tool",
        module=mounting(lambda: _with(Echo(), effects=("write",), read_only=True)),
        samples=ONE_CALL,
    ),
    "tool.can-be-shown-to-a-model": Subject(
        kind="tool", module=mounting(lambda: _with(Echo(), input_schema=_BAD))
    ),
    "tool.rejects-unknown-arguments": _echo(
        input_schema={
            key: value
            for key, value in TEXT_SCHEMA.items()
            if key != "additionalProperties"
        }
    ),
    "tool.survives-an-empty-call": _open_schema(lambda text: text + ""),  # type: ignore[operator]
    "tool.works-with-required-arguments-alone": _open_schema(len),  # type: ignore[arg-type]
    "tool.reports-wrong-types": Subject(
        kind="tool",
        module=mounting(lambda: _with(Echo(), input_schema=_AMBIGUOUS)),
        samples=ONE_CALL,
    ),
    "tool.survives-wrong-types": _open_schema(lambda text: text.strip()),  # type: ignore[union-attr]
    "tool.survives-broken-characters": _reading(lambda text: text.encode()),
    "tool.survives-null-characters": _reading(
        lambda text: 1 / 0 if "\0" in text else None
    ),
    "tool.survives-any-script": _reading(lambda text: text.encode("ascii")),
    "tool.survives-empty-texts": _reading(lambda text: text[0]),
    "tool.survives-huge-texts": _reading(_shorter_than(100_000)),
    "tool.survives-extreme-numbers": Subject(
        kind="tool", module=mounting(lambda: Running(run=_pack, input_schema=NUMBER))
    ),
    "tool.survives-deep-nesting": _open_schema(_not_deeper_than(50)),
    "tool.leaves-its-arguments-alone": running(_change_the_input),
    "tool.fails-with-a-result": running(_crash, NO_MESSAGE),
    "tool.returns-a-tool-result": running(_return_text),
    "tool.succeeds-with-the-samples-of-its-author": running(_fail),
    "tool.survives-plain-calls": running(_crash),
    "tool.runs-again": _every_other_time(),
    "tool.returns-json": _returning({"when": object()}),
    "tool.returns-what-reads-back": _returning({"pair": (1, 2)}),
    "tool.returns-text-that-can-be-stored": _returning("broken \ud83d"),
    "tool.returns-what-a-model-can-read": _returning("x" * 2_000_000),
    "tool.returns-results-of-its-own": running(_return_shared),
    "tool.says-why-it-failed": running(_fail_in_silence),
    "tool.fails-without-a-traceback": running(_fail_with_a_traceback),
    "tool.runs-beside-itself": _crowded(),
    "tool.ends-when-its-call-is-cancelled": running(_go_on_regardless),
    "tool.works-after-a-cancelled-call": Subject(
        kind="tool", module=mounting(Locking), samples=ONE_CALL
    ),
    "tool.leaves-nothing-after-a-cancelled-call": running(_leave_a_file_when_cancelled),
    "tool.obeys-its-deadline": running(
        _wait_under_a_shield, ToolSamples(slow={"echo": {"text": "wait"}})
    ),
    "tool.ends-with-a-cancelled-turn": running(
        _wait_under_a_shield, ToolSamples(slow={"echo": {"text": "wait"}})
    ),
    "tool.serves-a-turn": _returning(""),
    "tool.is-announced-once": subject(_emit_by_itself),
}
