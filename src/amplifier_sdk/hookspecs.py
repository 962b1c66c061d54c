"""Module types as typed hookspecs.

Pluggy registers, names, orders and validates implementations, but it cannot await and its relay is
untyped. So each spec here is an object that knows its own signature: `spec.impl` marks an implementation
and lets a type checker refuse one that does not fit, `spec.call` awaits the implementations of one plugin.
The kernel resolves them through pluggy's public `get_hookimpls()`.

```python
from amplifier_sdk.hookspecs import amplifier_tool

@amplifier_tool.impl
async def mount_clock(coordinator: Coordinator, config: Config) -> object:
    return Clock()
```

An application adds a module type of its own with `@hookspec` and a `ModuleKind`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Concatenate, Final, Generic, ParamSpec, TypeAlias, TypeVar, overload

import attrs
from pluggy import HookimplMarker, HookspecMarker, PluginManager

from amplifier_sdk._callables import AnyCallable
from amplifier_sdk.contracts import (
    ContextManager,
    Coordinator,
    HookHandler,
    Orchestrator,
    Provider,
    Tool,
)
from amplifier_sdk.errors import HookspecError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import Value

__all__ = [
    "KINDS",
    "PROJECT",
    "Config",
    "HookSpec",
    "ModuleKind",
    "amplifier_context",
    "amplifier_contributions",
    "amplifier_hook",
    "amplifier_orchestrator",
    "amplifier_provider",
    "amplifier_tool",
    "hookspec",
]

PROJECT: Final = "amplifier"
"""The name under which pluggy keeps our specs and implementations."""

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

Config: TypeAlias = Mapping[str, JSONValue]
"""A module's `config` from the mount plan."""


@attrs.define(eq=False)
class HookSpec(Generic[P, R]):
    """One hook: its name, its signature, and the two things done with it."""

    name: str
    function: Callable[P, Coroutine[object, object, R]]
    parameters: tuple[str, ...] = attrs.field(init=False)
    _namespace: type = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        # read once, as each mount of each module is called by these names
        self.parameters = tuple(inspect.signature(self.function).parameters)
        marked = HookspecMarker(PROJECT)(self.function)
        # One class for all managers: a class for each takes 2.5 KB and most of a session's set-up.
        self._namespace = type("Spec", (), {self.name: staticmethod(marked)})

    @overload
    def impl(
        self, function: Callable[P, Coroutine[object, object, R]], /
    ) -> Callable[P, Coroutine[object, object, R]]: ...
    @overload
    def impl(
        self, function: Callable[Concatenate[S, P], Coroutine[object, object, R]], /
    ) -> Callable[Concatenate[S, P], Coroutine[object, object, R]]: ...
    def impl(self, function: AnyCallable, /) -> object:
        """Mark a coroutine function, or a method, as an implementation of this hook.

        Raises:
            HookspecError: it is not a coroutine function, or it asks for an argument the hook lacks.
        """
        self.check(function, getattr(function, "__qualname__", repr(function)))
        return HookimplMarker(PROJECT)(specname=self.name)(function)

    def check(self, function: object, plugin: str) -> None:
        """Refuse an implementation that does not fit.

        Raises:
            HookspecError: names the plugin, this hook and what is wrong.
        """
        # first: it is written with 'async def' already, which is asked for below
        if inspect.isasyncgenfunction(function):
            raise HookspecError(
                f"{plugin}: an implementation of {self.name} returns what it mounts; it cannot 'yield'"
            )
        if not inspect.iscoroutinefunction(function):
            raise HookspecError(
                f"{plugin}: an implementation of {self.name} is an 'async def' function"
            )
        # a method has its instance besides, which pluggy leaves out as well
        given = [
            name for name in inspect.signature(function).parameters if name != "self"
        ]
        unknown = [name for name in given if name not in self.parameters]
        if unknown:
            raise HookspecError(
                f"{plugin}: {self.name} has no argument {', '.join(map(repr, unknown))};"
                f" it has {', '.join(self.parameters)}"
            )

    def add_to(self, manager: PluginManager) -> None:
        """Make the spec known to a plugin manager."""
        manager.add_hookspecs(self._namespace)

    async def call(
        self,
        manager: PluginManager,
        plugin: object,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> list[R]:
        """Await this plugin's implementations in the order pluggy gives them and return their answers."""
        values = dict(zip(self.parameters, args, strict=False)) | kwargs
        return [
            await implementation.function(
                *(
                    values[name]
                    for name in (*implementation.argnames, *implementation.kwargnames)
                )
            )
            # pluggy calls its implementations from the end of the list
            for implementation in reversed(
                getattr(manager.hook, self.name).get_hookimpls()
            )
            if implementation.plugin is plugin
        ]


def hookspec(function: Callable[P, Coroutine[object, object, R]]) -> HookSpec[P, R]:
    """Make a typed spec of a coroutine function's signature; its body is never run."""
    return HookSpec(function.__name__, function)


@hookspec
async def amplifier_provider(coordinator: Coordinator, config: Config) -> object:
    """Mount a provider: return it, a cleanup callable, or `None` to stay away."""


@hookspec
async def amplifier_tool(coordinator: Coordinator, config: Config) -> object:
    """Mount a tool or several: return it, a list, a cleanup callable, or `None`."""


@hookspec
async def amplifier_hook(coordinator: Coordinator, config: Config) -> object:
    """Register handlers on `coordinator.hooks`: return a cleanup callable or `None`."""


@hookspec
async def amplifier_orchestrator(coordinator: Coordinator, config: Config) -> object:
    """Mount the agent loop: return it, a cleanup callable, or `None`."""


@hookspec
async def amplifier_context(coordinator: Coordinator, config: Config) -> object:
    """Mount the context manager: return it, a cleanup callable, or `None`."""


@hookspec
async def amplifier_contributions(coordinator: Coordinator, channel: str) -> object:
    """Contribute to a channel, such as `observability.events`: return a value, or `None` to stay out of it.

    No module type: any plugin object may implement it beside the hook that mounts it, and every one is asked
    about every channel that somebody collects.
    """


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ModuleKind(Value):
    """A module type: where it stands in the plan, where its instances are mounted, what they must have.

    Args:
        name: as modules declare it, for example `tool`.
        section: the plan's list of such modules; a `single` kind stands under `session` instead.
        mount_point: where instances go.
        spec: the hook that mounts one.
        protocol: what an instance must satisfy; `None` for what is not mounted as an object.
        single: whether a session has exactly one.
        prefixes: the module ids' usual beginnings, used when a module declares no type.
    """

    name: str
    section: str
    mount_point: str
    spec: HookSpec[[Coordinator, Config], object]
    protocol: type | None = None
    single: bool = False
    prefixes: tuple[str, ...] = ()


KINDS: Final = (
    ModuleKind(
        name="orchestrator",
        section="orchestrator",
        mount_point="orchestrator",
        spec=amplifier_orchestrator,
        protocol=Orchestrator,
        single=True,
        prefixes=("loop-", "orchestrator-"),
    ),
    ModuleKind(
        name="context",
        section="context",
        mount_point="context",
        spec=amplifier_context,
        protocol=ContextManager,
        single=True,
        prefixes=("context-",),
    ),
    ModuleKind(
        name="provider",
        section="providers",
        mount_point="providers",
        spec=amplifier_provider,
        protocol=Provider,
        prefixes=("provider-",),
    ),
    ModuleKind(
        name="tool",
        section="tools",
        mount_point="tools",
        spec=amplifier_tool,
        protocol=Tool,
        prefixes=("tool-",),
    ),
    ModuleKind(
        name="hook",
        section="hooks",
        mount_point="hooks",
        spec=amplifier_hook,
        protocol=HookHandler,
        prefixes=("hooks-", "hook-"),
    ),
)
"""The five module types: the one place where they are listed, in the order in which a session mounts them."""
