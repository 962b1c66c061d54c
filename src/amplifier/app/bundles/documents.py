"""A bundle's file, read strictly: Markdown with its fields at the head, or YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Final, TypeVar

import attrs

from amplifier.app.profiles.documents import (
    DisplayChoices,
    Entries,
    ProfileFile,
    ProfileHead,
)
from amplifier.app.settings.layers import decode_mapping, read_fields, with_lines
from amplifier_kit.files.frontmatter import decode_front_matter
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["BundleFile", "BundleHead", "parse_bundle"]

N = TypeVar("N", bound=Sized)

_PLAN: Final = ("session", "providers", "tools", "hooks")
_ALIKE: Final = (*_PLAN, "exclude", "ui")
"""What means the same in a bundle as in a profile."""

_OWN: Final = ("added", "path", "project", "user")
_MOST_NAMES: Final = 200


def _few(_: object, attribute: attrs.Attribute[N], names: N) -> None:
    """Refuse a list of others that nobody wrote by hand: each of them is looked for on the disk."""
    if len(names) > _MOST_NAMES:
        raise ValueError(
            f"{attribute.name} has at most {_MOST_NAMES} entries; got {len(names)}"
        )


@attrs.frozen(kw_only=True)
class BundleHead:
    """What a bundle says of itself; its name is the one under which others name what is in its folder."""

    name: str = ""
    version: str = ""
    description: str = ""


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
    """What agents get from the session that delegates to them: the configuration of `tool-task`."""

    tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] | None = None
    hooks: tuple[str, ...] | None = None
    exclude_hooks: tuple[str, ...] | None = None

    @property
    def config(self) -> JSONObject:
        """The same as options of `tool-task`."""
        told = {
            "inherit_tools": self.tools,
            "exclude_tools": self.exclude_tools,
            "inherit_hooks": self.hooks,
            "exclude_hooks": self.exclude_hooks,
        }
        return {name: list(value) for name, value in told.items() if value is not None}


@attrs.frozen(kw_only=True)
class _Fields:
    """The keys of a bundle."""

    bundle: BundleHead = attrs.field(factory=BundleHead)
    includes: tuple[str | _Include, ...] = attrs.field(default=(), validator=_few)
    session: Mapping[str, JSONValue] = attrs.field(factory=dict)
    providers: Entries = ()
    tools: Entries = ()
    hooks: Entries = ()
    agents: _Agents = attrs.field(factory=_Agents)
    context: _Context = attrs.field(factory=_Context)
    spawn: _Spawn = attrs.field(factory=_Spawn)
    exclude: Mapping[str, JSONValue] = attrs.field(factory=dict)
    ui: DisplayChoices = attrs.field(factory=DisplayChoices)


@attrs.frozen(kw_only=True)
class BundleFile:
    """One bundle as its author wrote it.

    Args:
        head: what it says of itself.
        path: its file.
        level: whose it is.
        collection: the collection it came with.
        includes: the bundles that it is laid over, the first below the second.
        context: files that the agent is shown.
        agents: names of agents that sessions know.
        own_agents: agents that stand in it, as partial mount plans.
        fields: what means the same in a profile.
        body: what the agent is told.
        text: the YAML of its fields, in their lines.
    """

    head: BundleHead
    path: Path
    level: str
    collection: str | None = None
    includes: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    own_agents: Mapping[str, Mapping[str, JSONValue]] = attrs.field(factory=dict)
    fields: Mapping[str, JSONValue] = attrs.field(factory=dict)
    body: str = ""
    text: str = attrs.field(default="", repr=False)

    @property
    def name(self) -> str:
        """Its name, else that of its file, or of its folder where the file is named as every bundle's is."""
        return self.head.name or (
            self.path.parent.name if self.path.stem == "bundle" else self.path.stem
        )

    @property
    def subject(self) -> str:
        """What messages call it."""
        return f"bundle {str(self.path)!r}"

    @property
    def is_own(self) -> bool:
        """Whether the person said where it stands; what was fetched, or came with a collection, is others'."""
        return self.collection is None and self.level in _OWN

    def to_profile(self) -> ProfileFile:
        """Return the profile that says the same, but for what it includes and brings along."""
        head = ProfileHead(
            name=self.name, version=self.head.version, description=self.head.description
        )
        name = f"bundle:{self.name}"
        return ProfileFile(
            name=name,
            path=self.path,
            level=self.level,
            collection=self.collection,
            head=head,
            fields=self.fields,
            body=self.body,
        )

    def refuse(self, key: tuple[str | int, ...], message: str) -> ConfigError:
        """Return the error that a value is wrong, with its place."""
        return ConfigError(
            with_lines([Problem(_written(key), message)], self.text),
            subject=self.subject,
        )


def parse_bundle(
    data: bytes, *, path: Path, level: str, collection: str | None = None
) -> BundleFile:
    """Read a bundle.

    Args:
        data: the file's content.
        path: the file; one that ends in `.md` has its fields at its head, another is YAML.
        level: whose it is.
        collection: the collection it came with.

    Raises:
        ConfigError: it is no UTF-8, no YAML, or has a key that no bundle has; names file, line and path of each.
    """
    subject = f"bundle {str(path)!r}"
    fields, body, text = _parts(data, subject, is_markdown=path.suffix == ".md")
    read = read_fields(_Fields, fields, text, subject=subject)
    return BundleFile(
        head=read.bundle,
        path=path,
        level=level,
        collection=collection,
        includes=tuple(
            each if isinstance(each, str) else each.bundle for each in read.includes
        ),
        context=read.context.include,
        agents=read.agents.include,
        own_agents=read.agents.inline,
        fields=_alike(fields, read.spawn.config),
        body=body,
        text=text,
    )


def _parts(
    data: bytes, subject: str, *, is_markdown: bool
) -> tuple[Mapping[str, JSONValue], str, str]:
    """Return the fields, the body, and the YAML of the fields in its own lines."""
    if not is_markdown:
        fields, text = decode_mapping(data, subject=subject)
        return fields, "", text
    read = decode_front_matter(data, subject=subject)
    return read.fields, read.body.strip(), read.head


def _alike(fields: Mapping[str, JSONValue], spawn: JSONObject) -> JSONObject:
    """Return the fields that a profile has too; what agents get is the configuration of `tool-task`."""
    alike: JSONObject = {key: value for key, value in fields.items() if key in _ALIKE}
    if spawn:
        tools = alike.get("tools")
        alike["tools"] = [
            *(tools if isinstance(tools, list) else []),
            {"module": "tool-task", "config": spawn},
        ]
    return alike


def _written(key: tuple[str | int, ...]) -> str:
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in key
    ).removeprefix(".")
