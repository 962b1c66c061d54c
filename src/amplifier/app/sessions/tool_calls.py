"""One tool call of a person's own: in a session, through the one path of every tool call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import ClassVar

import attrs

from amplifier.app.sessions.composition import Composition
from amplifier_kit.open_data import as_object
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.effects import EFFECTS, effects_of
from amplifier_sdk.errors import ConfigError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of
from amplifier_sdk.results import ToolResult

__all__ = [
    "OneCall",
    "ToolShown",
    "read_arguments",
    "read_value",
    "require_tool",
    "show_tools",
    "to_look",
]


@attrs.frozen(kw_only=True)
class ToolShown:
    """A tool as it is shown to a person; `effects` is `None` where nobody says what it does."""

    name: str
    description: str
    schema: Mapping[str, JSONValue]
    effects: tuple[str, ...] | None

    @property
    def effects_text(self) -> str:
        """What it does as a list shows it: `read, write`, or `unknown`."""
        if self.effects is None:
            return "unknown"
        return ", ".join(self.effects)

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        return {
            "name": self.name,
            "description": self.description,
            "effects": None if self.effects is None else list(self.effects),
            "input_schema": dict(self.schema),
        }


@attrs.define(eq=False)
class OneCall:
    """A loop that makes one call and asks no model; `result` is what came of it.

    Args:
        tool: the tool's name.
        arguments: what it is called with.
    """

    name: ClassVar[str] = "one-call"
    needs_provider: ClassVar[bool] = False

    tool: str
    arguments: JSONObject
    result: ToolResult | None = None

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        """Make the call and return its result as text.

        Raises:
            ConfigError: no such tool is mounted.
        """
        # the contract's; the call needs none of them
        del prompt, context, providers, hooks
        self.result = await require_tool(self.tool, tools).execute(self.arguments)
        return self.result.get_serialized_output()


def to_look(composition: Composition) -> Composition:
    """Say that a session is made for a look at its tools: it has no provider, and no hook that would log the look."""
    # Neither is needed to list tools, and a provider without a key would fail the look.
    return _without(composition, "providers", "hooks")


def show_tools(tools: Mapping[str, Tool]) -> list[ToolShown]:
    """Describe the tools of a session, by name."""
    return [_shown(name, tool) for name, tool in sorted(tools.items())]


def require_tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    """Return the tool of a name.

    Raises:
        ConfigError: none is mounted; names the nearest.
    """
    if name not in tools:
        hint = (
            did_you_mean(name, list(tools))
            or f"; mounted: {', '.join(sorted(tools)) or 'none'}"
        )
        problem = f"no such tool is mounted{hint}"
        raise ConfigError.of(name, problem, subject="choice of a tool")
    return tools[name]


def read_arguments(given: Iterable[str], schema: Mapping[str, JSONValue]) -> JSONObject:
    """Read arguments that are written as `key=value`.

    A value is JSON where it can be read as that, else text. Where the schema wants text it stays as it is written,
    unless it stands in quotes.

    Args:
        given: the arguments as they were typed.
        schema: the schema of the tool's input.

    Raises:
        ValueError: one is no `key=value`, or stands twice.
    """
    properties = schema.get("properties")
    arguments: JSONObject = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ValueError(f"an argument is written as KEY=VALUE; got {text!r}")
        if key in arguments:
            raise ValueError(f"the argument {key} stands twice")
        # The schema may be anything that a server sent.
        wanted = as_object(as_object(properties).get(key))
        kind = wanted.get("type")
        arguments[key] = value if _is_plain(value, kind) else read_value(value)
    return arguments


def _without(composition: Composition, *sections: str) -> Composition:
    plan = {
        key: value for key, value in composition.plan.items() if key not in sections
    }
    return attrs.evolve(composition, plan=plan, profile=None)


def read_value(text: str) -> JSONValue:
    """Read a value that a person typed as JSON; what is none is text."""
    try:
        value: JSONValue = json.loads(text)
    except ValueError:
        return text
    return value


def _is_plain(text: str, kind: JSONValue) -> bool:
    """Tell whether a value is text as it is typed: the schema wants text, unquoted."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return kind == "string" and not is_quoted


def _shown(name: str, tool: Tool) -> ToolShown:
    effects = effects_of(tool, name=name)
    if effects is None:
        declared = None
    else:
        declared = tuple(effect for effect in EFFECTS if effect in effects)
    return ToolShown(
        name=name,
        description=tool.description,
        schema=schema_of(tool),
        effects=declared,
    )
