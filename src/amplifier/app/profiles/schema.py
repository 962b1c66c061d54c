"""The keys of a profile's and of a bundle's file."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Final, Literal, TypeAlias, TypeVar

import attrs

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["BundleFields", "FileHead", "ProfileFields", "ProfileHead"]

N = TypeVar("N", bound=Sized)

_MAX_NAMES: Final = 200

_Entries: TypeAlias = tuple[str | Mapping[str, JSONValue], ...]
"""Modules of a section: each an id, or a mapping as in a mount plan."""


def _few(_: object, attribute: attrs.Attribute[N], names: N) -> None:
    # Each name costs a search of the disk, and a foreign bundle may hold any number.
    if len(names) > _MAX_NAMES:
        problem = f"has at most {_MAX_NAMES} entries; got {len(names)}"
        raise ValueError(f"{attribute.name} {problem}")


@attrs.frozen(kw_only=True)
class FileHead:
    """What a file says of itself."""

    name: str = ""
    version: str = ""
    description: str = ""


@attrs.frozen(kw_only=True)
class ProfileHead(FileHead):
    """What a profile says of itself.

    Args:
        model: `provider/model`, or a model alone.
        extends: the profile that it builds on.
    """

    model: str | None = None
    extends: str | None = None


@attrs.frozen(kw_only=True)
class _Display:
    """What a person is shown; `None` leaves it to the settings."""

    show_thinking_stream: bool | None = None
    show_tool_lines: bool | None = None
    show_usage: bool | None = None


@attrs.frozen(kw_only=True)
class _Fields:
    """What means the same in both files."""

    session: Mapping[str, JSONValue] = attrs.field(factory=dict)
    providers: _Entries = ()
    tools: _Entries = ()
    hooks: _Entries = ()
    exclude: Mapping[str, JSONValue] = attrs.field(factory=dict)
    ui: _Display = attrs.field(factory=_Display)


@attrs.frozen(kw_only=True)
class ProfileFields(_Fields):
    """The keys of a profile."""

    profile: ProfileHead = attrs.field(factory=ProfileHead)
    orchestrator: Mapping[str, JSONValue] = attrs.field(factory=dict)
    context: Mapping[str, JSONValue] = attrs.field(factory=dict)
    agents: Literal["all", "none"] | tuple[str, ...] | None = None


@attrs.frozen(kw_only=True)
class _Include:
    bundle: str


@attrs.frozen(kw_only=True)
class _Context:
    """Files that the agent is shown before its instruction."""

    include: tuple[str, ...] = attrs.field(default=(), validator=_few)


@attrs.frozen(kw_only=True)
class _Agents:
    """The agents of a session: by name, or as they are."""

    include: tuple[str, ...] = attrs.field(default=(), validator=_few)
    inline: Mapping[str, Mapping[str, JSONValue]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _Spawn:
    """What agents get from the session that delegates to them."""

    tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] | None = None
    hooks: tuple[str, ...] | None = None
    exclude_hooks: tuple[str, ...] | None = None

    @property
    def config(self) -> JSONObject:
        """The same as options of `tool-task`."""
        options = {
            "inherit_tools": self.tools,
            "exclude_tools": self.exclude_tools,
            "inherit_hooks": self.hooks,
            "exclude_hooks": self.exclude_hooks,
        }
        return {name: [*each] for name, each in options.items() if each is not None}


@attrs.frozen(kw_only=True)
class BundleFields(_Fields):
    """The keys of a bundle."""

    bundle: FileHead = attrs.field(factory=FileHead)
    includes: tuple[str | _Include, ...] = attrs.field(default=(), validator=_few)
    agents: _Agents = attrs.field(factory=_Agents)
    context: _Context = attrs.field(factory=_Context)
    spawn: _Spawn = attrs.field(factory=_Spawn)

    @property
    def included(self) -> tuple[str, ...]:
        """The bundles that it includes, by name or address."""
        names = (
            each if isinstance(each, str) else each.bundle for each in self.includes
        )
        return tuple(names)
