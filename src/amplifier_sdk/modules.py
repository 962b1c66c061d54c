"""What the decorators make: modules that the loader mounts without a `mount` function.

A decorated class stays a plain class. Its `__init__` may take `config` and `coordinator`, by these names.
A `config` annotated with an attrs class or a dataclass is built from the plan's mapping, strictly; a module
without a `config` parameter takes no configuration at all.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from types import UnionType
from typing import Final, Union, get_args, get_origin

import attrs

from amplifier_sdk._callables import AnyCallable
from amplifier_sdk._reader.annotations import resolve
from amplifier_sdk.contracts import Coordinator, Tool
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.handlers import register_handlers, subscriptions_of
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.tools import FunctionTool, tools_of
from amplifier_sdk.values import Value

__all__ = ["MODULE_ATTRIBUTE", "ModuleDefinition", "definition_of"]

MODULE_ATTRIBUTE: Final = "__amplifier_module__"
"""Where a decorated class keeps its definition."""


@lru_cache(maxsize=256)
def _parameters_of(factory: AnyCallable) -> Mapping[str, inspect.Parameter]:
    """Return what a module's factory takes; the sessions of a process mount the same modules."""
    return inspect.signature(factory).parameters


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ModuleDefinition(Value):
    """A module made by a decorator: its type's name and what builds its instance."""

    kind: str
    factory: AnyCallable

    async def mount(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        """Build the module, arrange its release, and return what is to be mounted: an instance, tools or `None`.

        An instance that is an async context manager is opened in a task of its own (`Coordinator.own`);
        one with `aclose` is closed when the session ends.

        Raises:
            ConfigError: the configuration does not fit, with every problem's path.
        """
        instance = self.build(coordinator, config)
        # opened before its handlers are registered: none is called too early
        if isinstance(instance, AbstractAsyncContextManager):
            await coordinator.own(instance, name=type(instance).__qualname__)
        elif callable(close := getattr(instance, "aclose", None)):
            coordinator.register_cleanup(close)
        if self.kind == "hook":
            for unregister in register_handlers(
                coordinator.hooks, instance, coordinator
            ):
                coordinator.register_cleanup(unregister)
            return None
        if self.kind == "context":
            # modules of other kinds need not import what contexts are made of
            from amplifier_sdk.contexts import BaseContext

            # an author may have set others
            if isinstance(instance, BaseContext) and instance.hooks is None:
                instance.hooks = coordinator.hooks
        if self.kind != "tool":
            return instance
        if isinstance(instance, FunctionTool):
            return instance.with_coordinator(coordinator)
        if isinstance(instance, Tool):
            return instance
        return [tool.with_coordinator(coordinator) for tool in tools_of(instance)]

    def build(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        """Build the instance from what its parameters ask for.

        Raises:
            ConfigError: the configuration does not fit, with every problem's path.
        """
        parameters = _parameters_of(self.factory)
        arguments: dict[str, object] = {}
        if "config" in parameters:
            arguments["config"] = self._read(config, parameters["config"].annotation)
        elif config:
            raise ConfigError(
                [
                    Problem(key, "unknown key; this module takes no configuration")
                    for key in config
                ]
            )
        if "coordinator" in parameters:
            arguments["coordinator"] = coordinator
        return self.factory(**arguments)

    def _read(self, config: Mapping[str, JSONValue], annotation: object) -> object:
        # a module without a typed configuration never needs it
        from amplifier_sdk.configuration import read_config

        for cls in _alternatives(self._resolved(annotation)):
            if attrs.has(cls) or hasattr(cls, "__dataclass_fields__"):
                return read_config(
                    cls, config, subject=f"configuration of {self._name}"
                )
        return dict(config)

    def _resolved(self, annotation: object) -> object:
        """Return the annotation of `config` as a type; the other parameters' ones need not be known at run time."""
        target: object = getattr(self.factory, "__init__", self.factory)
        try:
            return resolve({"config": annotation}, getattr(target, "__globals__", {}))[
                "config"
            ]
        except NameError as error:
            raise TypeError(
                f"{self._name}: parameter 'config' has the annotation {annotation!r}, which cannot be resolved:"
                f" {error}. Define or import the name at the top of the module"
            ) from error

    @property
    def _name(self) -> str:
        return str(getattr(self.factory, "__qualname__", repr(self.factory)))


def _alternatives(annotation: object) -> tuple[type, ...]:
    """Return the class that an annotation is, or those of a union."""
    parts = (annotation,)
    if get_origin(annotation) in (Union, UnionType):
        parts = get_args(annotation)
    return tuple(part for part in parts if isinstance(part, type))


def definition_of(target: object) -> ModuleDefinition | None:
    """Return the definition of what a decorator made (a class, a tool, a handler), or `None`."""
    definition = getattr(target, MODULE_ATTRIBUTE, None)
    if isinstance(definition, ModuleDefinition):
        if definition.factory is target:
            return definition
        # A subclass inherits the definition and an instance has its class's; each stands for itself.
        return attrs.evolve(
            definition, factory=target if isinstance(target, type) else lambda: target
        )
    if isinstance(target, FunctionTool):
        return ModuleDefinition(kind="tool", factory=lambda: target)
    if subscriptions_of(target):
        return ModuleDefinition(kind="hook", factory=lambda: target)
    return None
