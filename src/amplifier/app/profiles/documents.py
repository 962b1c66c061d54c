"""A profile's file, read strictly: the fields at its head and the text below them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.settings.layers import read_fields
from amplifier_kit.files.frontmatter import decode_front_matter
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "PLAN_SECTIONS",
    "DisplayChoices",
    "Entries",
    "ProfileFile",
    "ProfileHead",
    "parse_profile",
]

PLAN_SECTIONS: Final = (
    "session",
    "orchestrator",
    "context",
    "providers",
    "tools",
    "hooks",
)
"""The sections of a profile that become those of the mount plan."""

Entries: TypeAlias = tuple[str | Mapping[str, JSONValue], ...]
"""Modules of a section: each an id, or a mapping as in a mount plan."""


@attrs.frozen(kw_only=True)
class ProfileHead:
    """What a profile says of itself.

    Args:
        name: under which it is found.
        version: of its author's counting.
        description: one line.
        model: `provider/model`, or a model alone.
        extends: the profile that it builds on.
    """

    name: str = ""
    version: str = ""
    description: str = ""
    model: str | None = None
    extends: str | None = None


@attrs.frozen(kw_only=True)
class DisplayChoices:
    """What a person is shown; `None` leaves it to the settings."""

    show_thinking_stream: bool | None = None
    show_tool_lines: bool | None = None
    show_usage: bool | None = None


@attrs.frozen(kw_only=True)
class _Fields:
    """The keys of a profile."""

    profile: ProfileHead = attrs.field(factory=ProfileHead)
    session: Mapping[str, JSONValue] = attrs.field(factory=dict)
    orchestrator: Mapping[str, JSONValue] = attrs.field(factory=dict)
    context: Mapping[str, JSONValue] = attrs.field(factory=dict)
    providers: Entries = ()
    tools: Entries = ()
    hooks: Entries = ()
    agents: Literal["all", "none"] | tuple[str, ...] | None = None
    exclude: Mapping[str, JSONValue] = attrs.field(factory=dict)
    ui: DisplayChoices = attrs.field(factory=DisplayChoices)


@attrs.frozen(kw_only=True)
class ProfileFile:
    """One profile as its author wrote it.

    Args:
        name: what it is called where it was found: `dev`, or `foundation:base`.
        path: its file.
        level: whose it is: `project`, `user`, `bundled`.
        collection: the collection it belongs to.
        head: what it says of itself.
        fields: all that stands at its head.
        body: what the agent is told.
    """

    name: str
    path: Path
    level: str
    collection: str | None = None
    head: ProfileHead
    fields: Mapping[str, JSONValue]
    body: str

    @property
    def plan(self) -> JSONObject:
        """The part of the fields that becomes the mount plan."""
        return {
            key: value for key, value in self.fields.items() if key in PLAN_SECTIONS
        }


def parse_profile(
    data: bytes, *, name: str, path: Path, level: str, collection: str | None = None
) -> ProfileFile:
    """Read a profile.

    Args:
        data: the file's content.
        name: what it is called where it was found.
        path: the file, for messages and for what is relative to it.
        level: whose it is.
        collection: the collection it belongs to.

    Raises:
        ConfigError: it is no UTF-8, its head is no YAML, or has a key that no profile has; names file and line.
    """
    subject = f"profile {str(path)!r}"
    read = decode_front_matter(data, subject=subject)
    head = read_fields(_Fields, read.fields, read.head, subject=subject).profile
    return ProfileFile(
        name=name,
        path=path,
        level=level,
        collection=collection,
        head=head,
        fields=read.fields,
        body=read.body.strip(),
    )
