"""The type of an answer: its JSON Schema, for the model, and how the model's text becomes a value of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isroutine
from typing import Final, Generic, TypeVar, cast

import attrs

from amplifier_sdk._reader.annotations import UnsupportedAnnotationError
from amplifier_sdk._reader.problems import path_text
from amplifier_sdk._reader.readers import MisfitError
from amplifier_sdk._reader.shapes import ShapeBuilder
from amplifier_sdk.arguments import ArgumentSchema, read_arguments
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import OutputMisfitError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.tools import FunctionTool, tool

__all__ = ["OutputCall", "OutputSchema"]

T_co = TypeVar("T_co", covariant=True)

VALUE: Final = "value"
"""The property that holds an answer that is no object: vendors' schema modes take objects alone."""


@attrs.frozen(eq=False, repr=False)
class OutputSchema(Generic[T_co]):
    """What an answer has to be.

    Args:
        name: what the type is called, for messages and for vendors.
        schema: the JSON Schema of the answer, always that of an object; any other value stands under its `value`.
    """

    name: str
    schema: JSONObject
    _is_wrapped: bool
    _read: Callable[[JSONValue], T_co]
    _checked: ArgumentSchema

    @classmethod
    def of(cls, wanted: object) -> OutputSchema[object]:
        """Describe a type.

        Args:
            wanted: an attrs class, a dataclass, a TypedDict, a plain type, a list, a union or another annotation
                with a JSON form; a pydantic model; a JSON Schema, whose answers are JSON data; or a function, whose
                arguments are the answer, which is read as an `OutputCall`.

        Raises:
            TypeError: it, or a field in it, has no JSON form; the message names the field.
            ValueError: it is no valid JSON Schema.
        """
        if isinstance(wanted, Mapping):
            name, schema, read = _of_schema(cast("Mapping[str, JSONValue]", wanted))
        elif isinstance(wanted, FunctionTool) or isroutine(wanted):
            name, schema, read = _of_function(wanted)
        else:
            name, schema, read = _of_annotation(wanted)
        is_wrapped = schema.get("type") != "object"
        if is_wrapped:
            schema = _wrapped(schema)
        checked = ArgumentSchema(schema, name)
        if isinstance(wanted, Mapping):
            # a person's own may be wrong; what is made of a type is not
            try:
                checked.compile()
            except ValueError as error:
                reason = str(error).partition(": ")[2]
                raise ValueError(
                    f"The output type is not valid JSON Schema: {reason}"
                ) from None
        return OutputSchema(name, schema, is_wrapped, read, checked)

    def read(self, text: str) -> T_co:
        """Read an answer; one in a Markdown fence, and slips that have one reading only, are accepted.

        Raises:
            OutputMisfitError: it is no JSON object, or does not fit.
        """
        arguments = read_arguments(text)
        if arguments.problem is not None:
            raise OutputMisfitError(
                f"The answer is not the JSON object that was asked for: {arguments.problem}"
            )
        return self.take(arguments.values)

    def unwrapped(self, answer: JSONObject) -> JSONValue:
        """Return the value that an object holds where the type is none of objects; else the object.

        Args:
            answer: as the schema has it, or a part of it: then `None` stands for what is not there yet.
        """
        if self._is_wrapped:
            return answer.get(VALUE)
        return answer

    def take(self, answer: JSONObject) -> T_co:
        """Read an answer that is JSON data already, such as the arguments of a tool call.

        Raises:
            OutputMisfitError: it does not fit.
        """
        problem = self._checked.problem(answer)
        if problem is not None:
            # its first line speaks of a tool's arguments
            raise OutputMisfitError(
                "\n".join([f"The answer is no {self.name}:", *problem.splitlines()[1:]])
            )
        try:
            return self._read(self.unwrapped(answer))
        except MisfitError as misfit:
            root = (VALUE,) if self._is_wrapped else ()
            problems = [
                f"- {path_text((*root, *path)) or 'the answer'}: {message}"
                for path, message in misfit.problems
            ]
            raise OutputMisfitError(
                "\n".join([f"The answer is no {self.name}:", *problems])
            ) from None


def _of_schema(
    schema: Mapping[str, JSONValue],
) -> tuple[str, JSONObject, Callable[[JSONValue], object]]:
    title = schema.get("title")
    return (title if isinstance(title, str) else "answer"), dict(schema), _as_it_is


@attrs.frozen(eq=False)
class OutputCall:
    """An answer that is the arguments of a function: what the function returns is the output."""

    _start: Callable[[Coordinator], Awaitable[object]]

    async def run(self, coordinator: Coordinator) -> object:
        """Call the function and return what it returns.

        Args:
            coordinator: for a function that asks for it, or for a `RunContext`.

        Raises:
            ToolError: what the function says that the model has to do better.
            Exception: whatever else it raises.
        """
        return await self._start(coordinator)


def _of_function(
    wanted: object,
) -> tuple[str, JSONObject, Callable[[JSONValue], object]]:
    made = wanted
    if not isinstance(made, FunctionTool):
        made = tool(cast("Callable[[], object]", wanted))
    function = made

    def read(value: JSONValue) -> OutputCall:
        def start(coordinator: Coordinator) -> Awaitable[object]:
            called = function.with_coordinator(coordinator)
            return called.result(cast("JSONObject", value))

        return OutputCall(start)

    return function.name, dict(function.input_schema), read


def _of_annotation(
    wanted: object,
) -> tuple[str, JSONObject, Callable[[JSONValue], object]]:
    builder = ShapeBuilder()
    name: str = getattr(wanted, "__name__", None) or str(wanted)
    try:
        shape = builder.shape(wanted)
    except UnsupportedAnnotationError as error:
        said = name if isinstance(wanted, type) else str(wanted)
        raise TypeError(f"The output type {said} has no JSON form: {error}") from None
    schema: JSONObject = dict(shape.schema)
    if builder.definitions:
        schema["$defs"] = builder.definitions
    return name, schema, shape.read


def _wrapped(schema: JSONObject) -> JSONObject:
    """Make an object of one property; definitions stay at the root, where references look for them."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: JSONObject = {
        "type": "object",
        "properties": {VALUE: inner},
        "required": [VALUE],
        "additionalProperties": False,
    }
    if "$defs" in schema:
        outer["$defs"] = schema["$defs"]
    return outer


def _as_it_is(value: JSONValue) -> object:
    return value
