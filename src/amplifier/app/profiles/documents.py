"""The file of a profile or a bundle, read strictly: its fields, and its instruction."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.profiles.schema import BundleFields, FileHead, ProfileFields
from amplifier.app.profiles.selection import BUNDLE
from amplifier.app.settings.layers import Key, decode_mapping, read_fields, with_lines
from amplifier_kit.files.frontmatter import decode_front_matter
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Kind", "ProfileFile", "parse_file", "parse_markdown_body"]

Kind: TypeAlias = Literal["profile", "bundle"]

_PLAN: Final = ("session", "providers", "tools", "hooks")
_PLAN_SECTIONS: Final = {
    "profile": (*_PLAN, "orchestrator", "context"),
    "bundle": _PLAN,  # what it calls `context` is files
}
_OWN: Final = ("added", "path", "project", "user")


@attrs.frozen(kw_only=True)
class ProfileFile:
    """One profile or bundle as its author wrote it.

    Args:
        kind: which of the two it is.
        name: what it is called where it was found: `dev`, `foundation:base`; `bundle:`
            and its own name.
        path: its file.
        level: whose it is: `project`, `user`, `bundled`, `added`, `path`, `git`.
        collection: the collection that it came with.
        head: what it says of itself.
        bases: what it builds on, the first below the second.
        model: `provider/model`, or a model alone.
        plan: its part of the mount plan.
        exclude: what it takes out of the plans that it builds on.
        ui: what a person is shown.
        agents: of a profile `all`, `none` or names; of a bundle further names.
        own_agents: agents that stand in it, as partial mount plans.
        context: files that the agent is shown.
        body: the agent's instruction.
        text: the YAML of its fields, in their lines.
    """

    kind: Kind = "profile"
    name: str = ""
    path: Path
    level: str
    collection: str | None = None
    head: FileHead = attrs.field(factory=FileHead)
    bases: tuple[str, ...] = ()
    model: str | None = None
    plan: Mapping[str, JSONValue] = attrs.field(factory=dict)
    exclude: Mapping[str, JSONValue] = attrs.field(factory=dict)
    ui: Mapping[str, JSONValue] = attrs.field(factory=dict)
    agents: str | tuple[str, ...] | None = None
    own_agents: Mapping[str, Mapping[str, JSONValue]] = attrs.field(factory=dict)
    context: tuple[str, ...] = ()
    body: str = ""
    text: str = attrs.field(default="", repr=False)

    @property
    def own_name(self) -> str:
        """Its name among those of its kind."""
        return self.name.removeprefix(BUNDLE)

    @property
    def subject(self) -> str:
        """What messages call it."""
        return f"{self.kind} {str(self.path)!r}"

    @property
    def is_own(self) -> bool:
        """Whether the person chose where it stands: a collection's or a fetched one is others'."""
        return self.collection is None and self.level in _OWN

    def base_key(self, index: int) -> Key:
        """Return where it names what it builds on."""
        if self.kind == "profile":
            return ("profile", "extends")
        return ("includes", index)

    def says(self, section: str) -> bool:
        """Tell whether it has a section of the plan, or excludes it."""
        return section in self.plan or section in self.exclude

    def refuse(self, key: Key, message: str) -> ConfigError:
        """Return the error that a value is wrong, with its place."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
        place = "".join(parts).removeprefix(".")
        problems = with_lines([Problem(place, message)], self.text)
        return ConfigError(problems, subject=self.subject)


def parse_markdown_body(text: str) -> str:
    """Return what stands below the fields at the head of a profile's text.

    Raises:
        ConfigError: the fields are not sound YAML; names line and column.
    """
    return decode_front_matter(text.encode(), subject="profile").body.strip()


def parse_file(
    data: bytes,
    *,
    kind: Kind,
    path: Path,
    level: str,
    name: str = "",
    collection: str | None = None,
) -> ProfileFile:
    """Read a profile or a bundle.

    Args:
        data: the file's content.
        kind: which of the two it is.
        path: the file; a bundle that does not end in `.md` is YAML without a body.
        level: whose it is.
        name: what a profile is called where it was found; a bundle names itself.
        collection: the collection that it came with.

    Raises:
        ConfigError: it is no UTF-8, no YAML, or has a key that no such file has; names
            file, line and path of each.
    """
    subject = f"{kind} {str(path)!r}"
    if kind == "profile" or path.suffix == ".md":
        read = decode_front_matter(data, subject=subject)
        fields, body, text = read.fields, read.body.strip(), read.head
    else:
        (fields, text), body = decode_mapping(data, subject=subject), ""
    # Present or absent matters: an empty section is laid over that of a base.
    plan = {key: fields[key] for key in _PLAN_SECTIONS[kind] if key in fields}
    file = ProfileFile(
        kind=kind,
        name=name,
        path=path,
        level=level,
        collection=collection,
        plan=plan,
        exclude=as_object(fields.get("exclude")),
        ui=as_object(fields.get("ui")),
        body=body,
        text=text,
    )
    return _READERS[kind](file, fields)


def _read_profile(file: ProfileFile, fields: Mapping[str, JSONValue]) -> ProfileFile:
    read = read_fields(ProfileFields, fields, file.text, subject=file.subject)
    bases = filter(None, [read.profile.extends])
    return attrs.evolve(
        file,
        head=read.profile,
        bases=tuple(bases),
        model=read.profile.model,
        agents=read.agents,
    )


def _read_bundle(file: ProfileFile, fields: Mapping[str, JSONValue]) -> ProfileFile:
    read = read_fields(BundleFields, fields, file.text, subject=file.subject)
    name = file.path.stem
    if name == "bundle":  # `NAME/bundle.md`
        name = file.path.parent.name
    return attrs.evolve(
        file,
        name=f"{BUNDLE}{read.bundle.name or name}",
        head=read.bundle,
        bases=read.included,
        plan=_with_spawn(file.plan, read.spawn.config),
        agents=read.agents.include,
        own_agents=read.agents.inline,
        context=read.context.include,
    )


_READERS: Final = {"profile": _read_profile, "bundle": _read_bundle}


def _with_spawn(
    plan: Mapping[str, JSONValue], config: JSONObject
) -> Mapping[str, JSONValue]:
    if not config:
        return plan
    # Merged as any module is: what a base says of it stays, key by key.
    tools = as_list(plan.get("tools"))
    return {**plan, "tools": [*tools, {"module": "tool-task", "config": config}]}
