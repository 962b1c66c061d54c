"""What settings may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from amplifier.app.settings.shared_limits import SharedLimits
from amplifier_sdk.bounds import count
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits

__all__ = [
    "DisplaySettings",
    "InstructionSettings",
    "MentionSettings",
    "SettingsSchema",
]

_Config = Mapping[str, JSONValue]


@attrs.frozen(kw_only=True)
class _Active:
    """The profile or bundle of new sessions: `active` wins over `default`."""

    active: str | None = None
    default: str | None = None


@attrs.frozen(kw_only=True)
class _Bundles:
    """The bundle of new sessions, bundles by name, and those that every session gets."""

    active: str | None = None
    added: Mapping[str, str] = attrs.field(factory=dict)
    app: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class _Module:
    """A module of a plan, or what is laid over the one of that id; `id` names one of several instances."""

    module: str
    id: str | None = None
    source: JSONValue = None
    config: _Config = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _Override:
    """What is laid over a module wherever a plan names it."""

    source: JSONValue = None
    config: _Config = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _Providers:
    """The providers of sessions, laid over those of a profile; `active` is the only one that sessions have."""

    active: str | None = None
    providers: tuple[_Module, ...] = ()


@attrs.frozen(kw_only=True)
class _Modules:
    """Modules that every session gets besides its profile's."""

    providers: tuple[_Module, ...] = ()
    tools: tuple[_Module, ...] = ()
    hooks: tuple[_Module, ...] = ()


@attrs.frozen(kw_only=True)
class _Collections:
    """Where collections of a bare name come from, by name."""

    catalogue: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class MentionSettings:
    """How much a mention may bring: bytes of a file, bytes of a turn, files within files."""

    max_file_bytes: int = attrs.field(default=200_000, validator=count)
    max_turn_bytes: int = attrs.field(default=1_000_000, validator=count)
    max_depth: int = attrs.field(default=3, validator=count)


@attrs.frozen(kw_only=True)
class InstructionSettings:
    """Whether sessions begin with the instructions of the person and of the project, and how many bytes of them."""

    enabled: bool = True
    max_bytes: int = attrs.field(default=32_768, validator=count)


@attrs.frozen(kw_only=True)
class _Sessions:
    """How sessions are stored: `sync` survives a power loss, `async` the end of the process; unless `keep` is false.

    `store` is `files`, or the URL of a store of several machines, and `namespace` says whose sessions are meant there.
    """

    keep: bool = True
    durability: Literal["sync", "async"] = "async"
    store: str = "files"
    namespace: str | None = None


@attrs.frozen(kw_only=True)
class _Server:
    """What `amplifier serve` and `amplifier worker` read, of the settings of the person who runs them alone."""

    limits: SharedLimits = attrs.field(factory=SharedLimits)


@attrs.frozen(kw_only=True)
class DisplaySettings:
    """What a person is shown; `visibility` is whose content blocks: those meant for users, for developers, or all.

    `notification` is how they are called when an answer of theirs is needed; with `screen_reader` a chat writes whole
    lines in their order, and redraws nothing.
    """

    visibility: Literal["user", "developer", "internal"] = "user"
    show_thinking_stream: bool = False
    show_tool_lines: bool = True
    show_usage: bool = True
    notification: Literal["bell", "desktop", "none"] = "bell"
    screen_reader: bool = False


@attrs.frozen(kw_only=True)
class SettingsSchema:
    """The keys of a settings file."""

    profile: _Active = attrs.field(factory=_Active)
    bundle: _Bundles = attrs.field(factory=_Bundles)
    config: _Providers = attrs.field(factory=_Providers)
    modules: _Modules = attrs.field(factory=_Modules)
    sources: Mapping[str, JSONValue] = attrs.field(factory=dict)
    overrides: Mapping[str, _Override] = attrs.field(factory=dict)
    collections: _Collections = attrs.field(factory=_Collections)
    mentions: MentionSettings = attrs.field(factory=MentionSettings)
    instructions: InstructionSettings = attrs.field(factory=InstructionSettings)
    sessions: _Sessions = attrs.field(factory=_Sessions)
    limits: Limits = attrs.field(factory=Limits)
    server: _Server = attrs.field(factory=_Server)
    ui: DisplaySettings = attrs.field(factory=DisplaySettings)
