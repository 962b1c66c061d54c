"""What can be set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_sdk.bounds import count, seconds
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.restrictions import Restriction, intersection

__all__ = ["HookConfig", "ShellHooksConfig", "ToolLimit", "agent_config"]


def _more_limits(own: JSONValue, asked: JSONValue) -> JSONValue:
    """Add limits to those of the session, all of which hold: one of the same name takes the place of none."""
    if not isinstance(asked, Mapping) or not (own is None or isinstance(own, Mapping)):
        raise ValueError(f"limits by name; got {asked!r:.100}")
    limits = dict(own or {})
    for name, limit in asked.items():
        key = name
        while key in limits and limits[key] != limit:
            key = f"{key}+"
        limits[key] = limit
    return limits


agent_config: Final[Mapping[str, Restriction]] = {
    "only_tools": intersection,
    "tool_limits": _more_limits,
}
"""What an agent may make stricter: it has some of the session's tools."""


def _not_empty(
    _: object, attribute: attrs.Attribute[str], value: str | tuple[str, ...]
) -> None:
    if not value or not value[0].strip() or any("\0" in word for word in value):
        raise ValueError(
            f"{attribute.name} is not empty and holds no NUL; got {value!r:.80}"
        )


@attrs.frozen(kw_only=True)
class HookConfig:
    """One command that is run on an event.

    Args:
        event: the event's name, or a glob such as `tool:*`.
        command: a program with its arguments, or a shell text.
        match: places in the event's data, each with what must stand there: a glob, several with `|` between them,
            or a value.
        timeout: seconds it may take.
        decides: whether the event waits for it and does what it answers; default yes on `tool:pre` and
            `prompt:submit`, no elsewhere.
        env: variables that it is given, besides the module's.
        name: what it is called in messages; default the event's name.
    """

    event: str = attrs.field(validator=_not_empty)
    command: str | tuple[str, ...] = attrs.field(validator=_not_empty)
    match: Mapping[str, JSONValue] = attrs.field(factory=dict)
    timeout: float = attrs.field(
        default=30.0, validator=[seconds, attrs.validators.le(3600)]
    )
    decides: bool | None = None
    env: Mapping[str, str] = attrs.field(factory=dict)
    name: str | None = None


@attrs.frozen(kw_only=True)
class ToolLimit:
    """Which tools an agent has.

    Args:
        only: these, by our names or Claude Code's; of Bash some commands alone as `Bash(git:*)`. `None` for all.
        without: not these.
    """

    only: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ShellHooksConfig:
    """The configuration; the module's README describes each key."""

    hooks: tuple[HookConfig, ...] = ()
    plugins: tuple[str, ...] = ()
    plugin_dirs: tuple[str, ...] | None = None
    claude_folder: bool = True
    strict: bool = False
    env_allow: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict)
    max_input_bytes: int = attrs.field(default=1_000_000, validator=count)
    max_output_bytes: int = attrs.field(default=100_000, validator=count)
    max_context: int = attrs.field(default=8_000, validator=count)
    max_stops: int = attrs.field(
        default=10, validator=[attrs.validators.ge(0), attrs.validators.le(25)]
    )
    models: Mapping[str, str] = attrs.field(factory=dict)
    prompt_provider: str | None = None
    ask_questions: bool = True
    model_commands: bool = True
    only_tools: tuple[str, ...] | None = None
    tool_limits: Mapping[str, ToolLimit] = attrs.field(factory=dict)
