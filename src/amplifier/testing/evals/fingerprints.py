"""Fingerprints: what a result depends on, as a digest.

A stored result is used again where nothing that it depends on has changed. Values are described by what they hold,
functions and classes of the same package by their code and what that refers to. What cannot be described, such as a
client, has to be stood for by a version that a person gives: a changed agent never passes for the old one unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from decimal import Decimal
from dis import get_instructions
from enum import Enum
from functools import partial
from hashlib import sha256
from pathlib import PurePath
from re import Pattern
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Final, TypeAlias, cast
from uuid import UUID

import attrs

from amplifier.agent.agent import Agent
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.output_schema import OutputSchema
from amplifier_sdk.tools import FunctionTool

__all__ = ["Describer", "digest"]

_AnyTool: TypeAlias = FunctionTool[..., object, object]  # type: ignore[explicit-any]  # of any signature

_TEXTS: Final = (Decimal, date, time, timedelta, PurePath, UUID, bytes, complex)


def digest(*parts: object) -> str:
    """Return the digest of descriptions, which are JSON data."""
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Describer:
    """Describes what a result depends on as JSON data.

    Args:
        version: stands for what cannot be described; empty where everything has to be.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        self._open: set[int] = set()

    def describe(self, value: object, path: str) -> object:
        """Describe a value.

        Args:
            value: whatever the result depends on.
            path: what it is called, for the error.

        Raises:
            ConfigError: it cannot be described, and there is no version.
        """
        if value is None or isinstance(value, (bool, int, float, str)):
            return [type(value).__name__, str(value)]
        # what refers to itself is described where it was first met
        if id(value) in self._open:
            return ["again", type(value).__qualname__]
        self._open.add(id(value))
        try:
            return [_name(type(value)), self._parts(value, path)]
        finally:
            self._open.discard(id(value))

    def _parts(self, value: object, path: str) -> object:
        match value:
            case Agent():
                return self._agent(value, path)
            case OutputSchema():
                return self.describe([value.name, value.schema], path)
            case FunctionTool():
                return self._tool(value, path)
            case Enum():
                return value.name
            case Pattern():
                return [str(value.pattern), value.flags]
            case ModuleType():
                return value.__name__
            case _ if isinstance(value, _TEXTS):
                return str(value)
            case Mapping() | AbstractSet() | list() | tuple():
                return self._container(value, path)
            case _:
                return self._code(value, path)

    def _container(self, value: object, path: str) -> object:
        if isinstance(value, Mapping):
            return [
                [str(key), self.describe(item, f"{path}.{key}")]
                for key, item in value.items()
            ]
        items = [
            self.describe(item, f"{path}[{number}]")
            for number, item in enumerate(cast("Sequence[object]", value))
        ]
        if isinstance(value, AbstractSet):
            # the order of a set is another one in each process
            return sorted(items, key=str)
        return items

    def _code(self, value: object, path: str) -> object:
        match value:
            case FunctionType():
                return self._function(value, path)
            case MethodType():
                return [
                    self.describe(value.__func__, path),
                    self.describe(value.__self__, f"{path}.__self__"),
                ]
            case partial():
                return self.describe([value.func, value.args, value.keywords], path)
            case type():
                return _methods(value)
            case _ if attrs.has(type(value)):
                return self._fields(value, path)
            case _:
                return self._opaque(value, path)

    def _agent(self, agent: Agent[object, object], path: str) -> object:
        fields = self._fields(agent, path)
        # as it runs now: with its overrides, and with the vendors that are installed
        opened = agent.session()
        plan = self.describe(opened.session.config, f"{path}.plan")
        deps = self.describe(opened.deps, f"{path}.deps")
        modules = opened.session.plan.modules.get("provider", ())
        is_object = any(each.module.startswith("agent-provider") for each in modules)
        if is_object and (agent.model is None or isinstance(agent.model, str)):
            self._opaque(agent.model, f"{path}.model (of an override)")
        return [fields, plan, deps]

    def _fields(self, value: object, path: str) -> object:
        return [
            [
                field.name,
                self.describe(getattr(value, field.name), f"{path}.{field.name}"),
            ]
            for field in attrs.fields(cast("type[attrs.AttrsInstance]", type(value)))
            if field.init  # what is not is made of the others
        ]

    def _tool(self, made: _AnyTool, path: str) -> object:
        shown = [made.name, made.description, made.input_schema]
        return [self.describe(shown, path), self.describe(made.function, path)]

    def _function(self, function: FunctionType, path: str) -> object:
        parts: list[object] = [_code(function.__code__), _name(function)]
        held: list[object] = [function.__defaults__, function.__kwdefaults__]
        held += [cell.cell_contents for cell in function.__closure__ or ()]
        parts.append(self.describe(held, path))
        for name in sorted(_global_names(function.__code__)):
            if name in function.__globals__:
                used = function.__globals__[name]
                parts.append([name, self._used(used, function, f"{path}: {name}")])
        return parts

    def _used(self, value: object, function: FunctionType, path: str) -> object:
        """Describe what a function refers to; a library's functions by their names."""
        if isinstance(value, (FunctionType, type)) and not _same_root(value, function):
            return _name(value)
        return self.describe(value, path)

    def _opaque(self, value: object, path: str) -> object:
        if not self._version:
            what = _name(type(value))
            raise ConfigError.of(
                path,
                f"a change of this {what} cannot be seen; give the experiment a version=, and another one"
                " whenever it changes",
                subject="experiment",
            )
        return "opaque"


def _name(value: object) -> str:
    named = cast("Callable[..., object]", value)  # type: ignore[explicit-any]  # a function or a class
    return f"{named.__module__}.{named.__qualname__}"


def _same_root(value: FunctionType | type[object], function: FunctionType) -> bool:
    root = function.__module__.partition(".")[0]
    return value.__module__.partition(".")[0] == root


def _methods(cls: type[object]) -> object:
    functions = [
        [name, _code(value.__code__)]
        for name, value in vars(cls).items()
        if isinstance(value, FunctionType)
    ]
    return [_name(cls), functions]


def _code(code: CodeType) -> object:
    """Describe compiled code: comments and line numbers do not count, another Python's code does."""
    return [code.co_code.hex(), list(code.co_names), _constants(code.co_consts)]


def _constants(values: Sequence[object]) -> list[object]:
    described: list[object] = []
    for value in values:
        if isinstance(value, CodeType):
            described.append(_code(value))
        elif isinstance(value, tuple):
            described.append(_constants(value))
        elif isinstance(value, frozenset):
            described.append(sorted(map(repr, value)))
        else:
            described.append(repr(value))
    return described


def _global_names(code: CodeType) -> set[str]:
    """Return the names that code, and the functions in it, look up in their module."""
    names = {
        step.argval for step in get_instructions(code) if step.opname == "LOAD_GLOBAL"
    }
    for value in code.co_consts:
        if isinstance(value, CodeType):
            names |= _global_names(value)
    return names
