"""Objects of an application as modules: tools, hooks and sub-agents that need no installation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Never, Protocol, TypeAlias, TypeVar, cast

import attrs

from amplifier.agent.sub_agents import SubAgent, SubAgentTool
from amplifier_sdk.contracts import Coordinator, Tool
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.handlers import register_handlers, subscriptions_of
from amplifier_sdk.hookspecs import PROJECT
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of
from amplifier_sdk.tools import FunctionTool, tool, tools_of

__all__ = [
    "AgentHook",
    "AgentTool",
    "ModuleTable",
    "PlainFunction",
    "Toolset",
    "as_tool",
]

DepsT = TypeVar("DepsT")


class PlainFunction(Protocol):
    """A function that `@tool` has not seen; what it has made of one has no `__name__`."""

    @property
    def __name__(self) -> str: ...

    __call__: Callable[..., object]  # type: ignore[explicit-any]  # of any signature


@attrs.frozen(init=False)
class Toolset:
    """Objects with `@tool` methods, and objects with the contract of tools, for an agent.

    Args:
        objects: each of them.
    """

    objects: tuple[object, ...]

    def __init__(self, *objects: object) -> None:
        self.__attrs_init__(objects)


AgentTool: TypeAlias = (  # type: ignore[explicit-any]  # functions of any signature
    str
    | Mapping[str, object]
    | FunctionTool[..., object, DepsT]
    | SubAgent[DepsT]
    | Toolset
    | type
    | PlainFunction
)
"""A tool for an agent: the id of a module, or its entry of a plan; what `@tool` made, or a function, which becomes what
`@tool` makes of it; another agent; a `Toolset`, or a class that `@toolset` made a module."""

AgentHook: TypeAlias = "str | Mapping[str, object] | object"
"""A hook for an agent: the id of a module, or its entry of a plan; a function that `@on` marked; an object with such
methods, or with implementations of hookspecs; or a class that `@hook` made a module."""

_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")


@attrs.define(eq=False)
class ModuleTable:
    """The modules of one agent: what its plan names, and what of it the loader is given.

    Args:
        prefix: what the ids of its own modules begin with, so that they are nobody else's.
    """

    prefix: str
    objects: dict[str, object] = attrs.field(factory=dict)
    agents: dict[str, object] = attrs.field(factory=dict)

    def add(self, kind: str, name: str, module: object) -> str:
        """Give an object to the loader, and return the id under which it is known there."""
        base = _NAME.sub("-", f"{self.prefix}-{kind}-{name}")
        module_id, number = base, 2
        while module_id in self.objects:
            module_id, number = f"{base}-{number}", number + 1
        self.objects[module_id] = module
        return module_id

    def tools(self, tools: Iterable[object]) -> list[JSONValue]:
        """Return the plan's entries of an agent's tools.

        Raises:
            ConfigError: one is none of what it may be, or two have one name.
        """
        given = list(tools)
        names = [name for each in given if (name := _tool_name(each)) is not None]
        for name in names:
            if names.count(name) > 1:
                raise _refused("tools", name, "one tool of each name")
        return [self._entry(each, self._tool) for each in given]

    def hooks(self, hooks: Iterable[object]) -> list[JSONValue]:
        """Return the plan's entries of an agent's hooks."""
        return [self._entry(each, self._hook) for each in hooks]

    def _entry(self, given: object, make: Callable[[object], str]) -> JSONValue:
        if isinstance(given, str):
            return {"module": given}
        if isinstance(given, Mapping):
            return dict(cast("Mapping[str, JSONValue]", given))
        return {"module": make(given)}

    def _tool(self, given: object) -> str:
        if isinstance(given, SubAgent):
            return self._agent(given)
        if definition_of(given) is not None or isinstance(given, type):
            return self._defined("tool", given)
        if isinstance(given, Toolset):
            tools = [tool for each in given.objects for tool in _tools_in(each)]
            return self.add("tool", "set", _ToolModule(tuple(tools)))
        raise _refused(
            "tools", given, "a function, a tool, an agent or the id of a module"
        )

    def _agent(self, agent: SubAgent[Never]) -> str:
        """Make a sub-agent known to the session, and a tool that asks it."""
        if agent.name in self.agents:
            raise _refused("tools", agent.name, "a second agent with a name of its own")
        check = agent.answer_check()
        self.agents[agent.name] = agent.overlay(self, check)
        tool = SubAgentTool.of(agent, check)
        return self.add("agent", agent.name, _ToolModule((tool,)))

    def _hook(self, given: object) -> str:
        if definition_of(given) is not None or isinstance(given, type):
            return self._defined("hook", given)
        if any(subscriptions_of(method) for method in vars(type(given)).values()):
            return self.add("hook", type(given).__name__, _HookModule(given))
        if callable(getattr(given, "mount", None)) or _implements(given):
            return self.add("hook", type(given).__name__, given)
        raise _refused(
            "hooks", given, "a handler marked with @on, or the id of a module"
        )

    def _defined(self, kind: str, given: object) -> str:
        """Add what a decorator of the SDK made a module."""
        definition = definition_of(given)
        if definition is None or definition.kind != kind:
            raise _refused(
                f"{kind}s", given, f"what a decorator of the SDK made a {kind}"
            )
        name = getattr(given, "name", None) or getattr(given, "__name__", None)
        return self.add(kind, str(name or type(given).__name__), given)


def as_tool(given: AgentTool[DepsT]) -> AgentTool[DepsT]:
    """Return what `@tool` makes of a plain function; anything else as it is."""
    if isinstance(given, (str, Mapping, FunctionTool, SubAgent, Toolset, type)):
        return given
    if definition_of(given) is not None or not callable(given):
        return given
    return tool(cast("Callable[[], object]", given))


def _tool_name(given: object) -> str | None:
    """Return what a model calls a tool by; `None` where only its module says it."""
    if isinstance(given, (FunctionTool, SubAgent)):
        return given.name
    return None


def _implements(given: object) -> bool:
    """Whether an object, or a package, has implementations of hookspecs."""
    return any(
        hasattr(getattr(given, name, None), f"{PROJECT}_impl") for name in dir(given)
    )


def _tools_in(given: object) -> Sequence[object]:
    """Return an object of a toolset if it is a tool, else its methods that are."""
    if isinstance(given, Tool):
        return [given]
    methods = tools_of(given)
    if not methods:
        raise _refused("tools", given, "an object with @tool methods in the Toolset")
    return methods


@attrs.frozen(eq=False)
class _ToolModule:
    """Tools of an application as a module."""

    tools: tuple[object, ...]

    async def mount(
        self, coordinator: Coordinator, _config: Mapping[str, JSONValue]
    ) -> object:
        """Return the tools, each with the session's coordinator where it takes one."""
        return [
            each.with_coordinator(coordinator)
            if isinstance(each, (FunctionTool, SubAgentTool))
            else each
            for each in self.tools
        ]


@attrs.frozen(eq=False)
class _HookModule:
    """A handler of an application, or an object with several, as a module."""

    handler: object

    async def mount(
        self, coordinator: Coordinator, _config: Mapping[str, JSONValue]
    ) -> object:
        """Register the handlers until the session ends."""
        for unregister in register_handlers(
            coordinator.hooks, self.handler, coordinator
        ):
            coordinator.register_cleanup(unregister)
        return None


def _refused(key: str, given: object, wanted: str) -> ConfigError:
    return ConfigError.of(key, f"expected {wanted}; got {given!r:.80}", subject="agent")
