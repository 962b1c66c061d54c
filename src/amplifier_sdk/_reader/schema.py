"""Signatures: what arguments a function takes, as JSON Schema, and how a model's JSON becomes its arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from types import UnionType
from typing import Final, NamedTuple, Union, get_args, get_origin

import attrs

from amplifier_sdk._callables import AnyCallable
from amplifier_sdk._reader.annotations import UnsupportedAnnotationError, resolve
from amplifier_sdk._reader.docstrings import parse
from amplifier_sdk._reader.problems import Path, path_text
from amplifier_sdk._reader.readers import MisfitError, Reader
from amplifier_sdk._reader.records import NO_DEFAULT
from amplifier_sdk._reader.scalars import Shape
from amplifier_sdk._reader.shapes import ShapeBuilder, described
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import Value

__all__ = ["Signature", "describe"]

_INJECTED: Final[Mapping[str, str]] = {
    "Coordinator": "amplifier_sdk.contracts",
    "RunContext": "amplifier_sdk.run_context",
    "ToolContext": "amplifier_sdk.progress",
}
"""What the runtime fills in, by the class's name, with its module: the classes need not be imported to make a tool."""

_INJECTED_TEXT: Final = (
    rf"(\w+\.)*(?P<name>{'|'.join(_INJECTED)})(\[.*\])?(\s*\|\s*None)?"
)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Signature(Value):
    """What a function takes.

    `schema` is the JSON Schema (2020-12) of its arguments, `description` the docstring's text before its
    sections. `coordinators`, `contexts` and `runs` are the parameters that the runtime fills in and the model does
    not see: with the session's coordinator, the call's context and the run's.
    """

    schema: JSONObject
    description: str
    coordinators: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    _readers: tuple[tuple[str, Reader], ...] = attrs.field(alias="readers", repr=False)
    _others: Reader | None = attrs.field(alias="others", repr=False)
    _declared: frozenset[str] = attrs.field(alias="declared", repr=False)
    _reserved: frozenset[str] = attrs.field(alias="reserved", repr=False)

    def bind(self, arguments: JSONObject) -> dict[str, object]:
        """Turn arguments that the schema accepts into those that the function's annotations promise.

        Raises:
            ToolError: a value does not fit its annotation, as a date that does not exist; names each path.
        """
        # a copy: handlers are shown the model's own arguments when the call has ended
        bound: dict[str, object] = {**arguments}
        problems: list[tuple[Path, str]] = []
        for name, read in self._readers:
            if name in bound:
                try:
                    bound[name] = read(bound[name])
                except MisfitError as misfit:
                    problems += misfit.under(name)
        if self._others is not None:
            problems += self._bind_others(bound, self._others)
        if problems:
            raise _refusal(problems)
        return bound

    def _bind_others(
        self, bound: dict[str, object], read: Reader
    ) -> list[tuple[Path, str]]:
        """Read what `**kwargs` takes; a name that the function keeps for itself is refused."""
        problems: list[tuple[Path, str]] = []
        for name in [name for name in bound if name not in self._declared]:
            if name in self._reserved:
                problems.append(((name,), "this name cannot be given"))
                continue
            try:
                bound[name] = read(bound[name])
            except MisfitError as misfit:
                problems += misfit.under(name)
        return problems


def describe(function: AnyCallable, *, method: bool = False) -> Signature:
    """Read a function's signature and docstring.

    Args:
        function: the function, or a method as its class defines it.
        method: leave the first parameter out; one named `self` or `cls` without annotation is left out anyway.

    Raises:
        TypeError: a parameter has no annotation, or one without a JSON form, or cannot be given by name. The
            message names the function, the parameter and the remedy.
    """
    parameters = _parameters(function, method)
    types = _annotations(
        function, [p for p in parameters if p.annotation is not p.empty]
    )
    docstring = parse(function.__doc__)
    builder = ShapeBuilder()
    properties: JSONObject = {}
    required: list[JSONValue] = []
    injected: dict[str, str] = {}
    readers: list[tuple[str, Reader]] = []
    others: Shape | None = None
    for parameter in parameters:
        name = parameter.name
        _check_kind(function, parameter)
        annotation = types[name]
        contract = _injected(annotation)
        if contract is not None:
            injected[name] = contract
            continue
        shape = _shape(builder, function, parameter, annotation)
        if parameter.kind is parameter.VAR_KEYWORD:
            others = shape
            continue
        has_default = parameter.default is not parameter.empty
        text = docstring.arguments.get(name)
        properties[name] = described(
            shape.schema, text, parameter.default if has_default else NO_DEFAULT
        )
        if not has_default:
            required.append(name)
        if not shape.plain:
            readers.append((name, shape.read))
    schema: JSONObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if others is None:
        schema["additionalProperties"] = False
    else:
        schema["additionalProperties"] = others.schema or True
    if builder.definitions:
        schema["$defs"] = builder.definitions
    given = {
        contract: tuple(name for name, found in injected.items() if found == contract)
        for contract in _INJECTED
    }
    return Signature(
        schema=schema,
        description=docstring.text,
        coordinators=given["Coordinator"],
        contexts=given["ToolContext"],
        runs=given["RunContext"],
        readers=tuple(readers),
        others=None if others is None else others.read,
        declared=frozenset(properties),
        reserved=frozenset({"self", "cls", *injected}),
    )


def takes_run_context(function: AnyCallable, parameter: inspect.Parameter) -> bool:
    """Whether the runtime fills in a parameter with the run's context, by its annotation."""
    if parameter.annotation is parameter.empty:
        return False
    return (
        _injected(_annotations(function, [parameter])[parameter.name]) == "RunContext"
    )


def _parameters(function: AnyCallable, method: bool) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    first = None
    if parameters:
        first = parameters[0]
    if first is not None and (
        method or (first.name in ("self", "cls") and first.annotation is first.empty)
    ):
        return parameters[1:]
    return parameters


def _check_kind(function: object, parameter: inspect.Parameter) -> None:
    match parameter.kind:
        case parameter.VAR_POSITIONAL:
            raise _wrong(
                function,
                f"*{parameter.name}",
                "is given by position; take a list, `items: list[str]`",
            )
        case parameter.POSITIONAL_ONLY:
            raise _wrong(
                function,
                parameter.name,
                "is given by position; a model names its arguments: remove the `/`",
            )
        case _ if parameter.annotation is parameter.empty:
            raise _wrong(
                function,
                parameter.name,
                f"has no annotation; write its type, for example `{parameter.name}: str`",
            )
        case _:
            return


def _annotations(
    function: AnyCallable, parameters: list[inspect.Parameter]
) -> dict[str, object]:
    names: dict[str, object] = getattr(inspect.unwrap(function), "__globals__", {})
    written = {parameter.name: parameter.annotation for parameter in parameters}
    try:
        return resolve(written, names)
    except NameError:
        # One by one, to name the parameter that cannot be resolved; those that the
        # runtime fills in are recognised by their text.
        return {
            name: _annotation(function, names, name, annotation)
            for name, annotation in written.items()
        }


def _annotation(
    function: object, names: dict[str, object], name: str, annotation: object
) -> object:
    # These are often imported for type checkers only; the name is enough to recognise them.
    if isinstance(annotation, str) and (
        found := re.fullmatch(_INJECTED_TEXT, annotation)
    ):
        return _Unresolved(found["name"])
    try:
        return resolve({name: annotation}, names)[name]
    except NameError as error:
        raise _wrong(
            function,
            name,
            f"has the annotation {annotation!r}, which cannot be resolved: {error}. Import the name at run time, "
            "at the top of the module",
        ) from error


class _Unresolved(NamedTuple):
    """Stands for the type of what the runtime fills in, where it is not imported at run time."""

    name: str


def _injected(annotation: object) -> str | None:
    """Return the name of what the runtime fills in for an annotation; `None` for what a model gives."""
    members = (annotation,)
    if get_origin(annotation) in (Union, UnionType):
        members = get_args(annotation)
    return next(filter(None, map(_contract, members)), None)


def _contract(annotation: object) -> str | None:
    if isinstance(annotation, _Unresolved):
        return annotation.name
    cls = get_origin(annotation) or annotation  # of `RunContext[Bank]` the class
    if not isinstance(cls, type):
        return None
    name = cls.__qualname__
    if _INJECTED.get(name) == cls.__module__:
        return name
    return None


def _shape(
    builder: ShapeBuilder,
    function: object,
    parameter: inspect.Parameter,
    annotation: object,
) -> Shape:
    try:
        return builder.shape(annotation)
    except UnsupportedAnnotationError as error:
        raise _wrong(function, parameter.name, f"has the annotation {error}") from None


def _wrong(function: object, parameter: str, problem: str) -> TypeError:
    name = getattr(function, "__qualname__", repr(function))
    module = getattr(function, "__module__", "")
    return TypeError(f"{module}.{name}: parameter {parameter!r} {problem}")


def _refusal(problems: list[tuple[Path, str]]) -> ToolError:
    return ToolError(
        "\n".join(f"{path_text(path)}: {message}" for path, message in problems)
    )
