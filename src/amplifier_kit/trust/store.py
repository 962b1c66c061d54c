"""What was trusted: stored outside every project, by folder and kind, as digests."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.open_data import as_object
from amplifier_kit.trust.fingerprints import (
    Code,
    DeclaredItem,
    Fingerprint,
    UnreadableItemError,
    fingerprint,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["PROJECT_FILES", "Grant", "TrustDecision", "TrustStore"]

PROJECT_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "agents": (".amplifier/agents", ".claude/agents"),
    "commands": (".amplifier/commands", ".claude/commands"),
    "environment": (".env", ".env.local"),
    "hooks": (
        ".amplifier/hooks",
        ".claude/hooks",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
    "instructions": ("AGENTS.md", "CLAUDE.md"),
    "mcp": (".mcp.json", ".amplifier/mcp.json", ".amplifier/mcp.yaml"),
    "modules": (".amplifier/modules",),
    "plugins": (".amplifier/plugins",),
    "profiles": (
        ".amplifier/profiles",
        ".amplifier/collections",
        ".amplifier/collections.lock",
        ".amplifier/bundles",
    ),
    "settings": (".amplifier/settings.yaml", ".amplifier/settings.local.yaml"),
    "skills": (".amplifier/skills", ".claude/skills"),
}
"""Where each kind stands in a project's folder. What one file names (a script, a module) is an item of its own."""


@attrs.frozen(kw_only=True)
class TrustDecision:
    """Whether items may be used.

    Args:
        trusted: whether a person trusted exactly this content, or there is none.
        reason: why not, in words.
        folder: the project's folder, links resolved.
        kind: what the items are for.
        items: what was evaluated: a digest by name, `absent` or `folder`; `=` stands before what is declared.
        changed: the names that are other than when they were trusted, new and missing ones too.
        contents: the files as they were evaluated; use these, since the files may have changed by now.
        can_be_trusted: whether `TrustStore.grant` takes it.
    """

    trusted: bool
    reason: str
    folder: str
    kind: str
    items: Mapping[str, str] = attrs.field(factory=dict)
    changed: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)
    can_be_trusted: bool = True


@attrs.frozen(kw_only=True)
class Grant:
    """What was trusted, and when, in seconds since the epoch."""

    folder: str
    kind: str
    items: Mapping[str, str]
    granted: float


@attrs.frozen
class TrustStore:
    """The store, in one file; several processes may use it."""

    file: PrivateFile

    @classmethod
    def in_home(cls) -> Self:
        """Return the person's own store: `trust/projects.json` in `AMPLIFIER_HOME`, else in `~/.amplifier`."""
        return cls(PrivateFile(amplifier_home() / "trust" / "projects.json"))

    def require(
        self, folder: Path, kind: str, items: Sequence[str | Code | DeclaredItem]
    ) -> TrustDecision:
        """Tell whether the items of a project may be used; whatever is not certain is not trusted.

        Where none of the items exists there is nothing to trust, and nothing in
        `TrustDecision.contents` to use. What was trusted with them and is not asked
        about does not count, so that one may ask for a part of what was trusted.

        Args:
            folder: the project's folder.
            kind: what the items are for, such as `mcp`; see `PROJECT_FILES`.
            items: everything that would run, be imported or be connected to: paths relative to the folder, and
                what is declared; of what only a copy is run, as `Code`.
        """
        # the same folder by every path to it
        real = os.path.realpath(folder)

        def refuse(
            reason: str, found: Fingerprint | None = None, changed: Sequence[str] = ()
        ) -> TrustDecision:
            return TrustDecision(
                trusted=False,
                reason=reason,
                folder=real,
                kind=kind,
                items={} if found is None else found.items,
                contents={} if found is None else found.contents,
                changed=tuple(changed),
                can_be_trusted=found is not None,
            )

        try:
            found = fingerprint(Path(real), items)
        except (UnreadableItemError, OSError, TypeError) as error:
            return refuse(str(error))
        # where nothing is there is nothing to trust, and nobody is asked
        if all(value == "absent" for value in found.items.values()):
            return attrs.evolve(refuse("", found), trusted=True)
        # a project that holds the store could write its own trust into it
        if Path(os.path.realpath(self.file.path)).is_relative_to(real):
            return refuse(
                f"the store {self.file.path} lies in the project; set AMPLIFIER_HOME to a place outside it"
            )
        try:
            grant = _grant_of(self.file.read(), real, kind)
        except (OSError, ValueError) as error:
            return refuse(f"what was trusted cannot be read: {error}", found)
        if grant is None:
            return refuse(f"nobody trusted the {kind} of this folder yet", found)
        changed = sorted(_changed(grant.items, found.items, _names(items)))
        if changed:
            return refuse(
                f"it changed since it was trusted: {', '.join(map(ascii, changed))}",
                found,
                changed,
            )
        return attrs.evolve(refuse("", found), trusted=True)

    def lost(self, decision: TrustDecision) -> str:
        """Say how what was evaluated differs from what a person trusted; nothing where they never trusted any of it.

        What was trusted may hold guards: without it more is allowed than the person believes.
        """
        if decision.trusted and decision.contents:
            return ""
        try:
            grant = self.of_folder(Path(decision.folder)).get(decision.kind)
        except (OSError, ValueError) as error:
            if decision.trusted:
                return ""
            return f"what was trusted cannot be read: {error}"
        items = {} if grant is None else grant.items
        # what was absent then is no loss now
        trusted = [name for name, value in items.items() if value != "absent"]
        if not decision.trusted:
            if trusted:
                return decision.reason
            return ""
        # Looked for now: it may have come, and been trusted, after the decision.
        gone = [
            name
            for name in trusted
            if not os.path.lexists(os.path.join(decision.folder, name))
        ]
        if gone:
            return f"it was trusted, and is gone: {', '.join(sorted(map(ascii, gone)))}"
        return ""

    def grant(self, decision: TrustDecision) -> None:
        """Trust what a decision evaluated, that content and no other.

        Raises:
            ValueError: the decision is about something that cannot be trusted.
            OSError: it cannot be stored.
        """
        if not decision.can_be_trusted:
            raise ValueError(
                f"the {decision.kind} of {decision.folder} cannot be trusted: {decision.reason}"
            )
        entry: JSONValue = {"items": dict(decision.items), "granted": time.time()}

        def add(content: JSONValue) -> JSONValue:
            folders = _folders(content)
            return {
                **folders,
                decision.folder: {
                    **_kinds(folders, decision.folder),
                    decision.kind: entry,
                },
            }

        self.file.update(add)

    def revoke(self, folder: Path, kind: str | None = None) -> bool:
        """Take trust back, of one kind or of all; return whether there was any.

        Raises:
            OSError: the store cannot be read or written.
            ValueError: it is damaged.
        """
        real = os.path.realpath(folder)
        if not any(
            grant.folder == real and kind in (None, grant.kind) for grant in self.list()
        ):
            return False

        def remove(content: JSONValue) -> JSONValue:
            folders = dict(_folders(content))
            kinds = {
                key: value
                for key, value in _kinds(folders, real).items()
                if kind not in (None, key)
            }
            # the entry goes with its last kind, so that the list names no empty
            # folders
            folders.pop(real, None)
            if kinds:
                return {**folders, real: kinds}
            return folders

        self.file.update(remove)
        return True

    def list(self) -> tuple[Grant, ...]:
        """Return all that is trusted, by folder and kind.

        Raises:
            OSError: the store cannot be read.
            ValueError: it is damaged.
        """
        folders = _folders(self.file.read())
        found = [
            _read_grant(kinds[kind], name, kind)
            for name in folders
            for kinds in [_kinds(folders, name)]
            for kind in kinds
        ]
        return tuple(sorted(found, key=lambda grant: (grant.folder, grant.kind)))

    def of_folder(self, folder: Path) -> dict[str, Grant]:
        """Return what is trusted of one folder, by kind.

        Raises:
            OSError: the store cannot be read.
            ValueError: it is damaged.
        """
        real = os.path.realpath(folder)
        kinds = _kinds(_folders(self.file.read()), real)
        return {kind: _read_grant(entry, real, kind) for kind, entry in kinds.items()}


def _names(items: Sequence[str | Code | DeclaredItem]) -> tuple[str, ...]:
    return tuple(
        item.name if isinstance(item, Code) else item
        for item in items
        if not isinstance(item, DeclaredItem)
    )


def _changed(
    before: Mapping[str, str], now: Mapping[str, str], asked: Sequence[str]
) -> Iterator[str]:
    """Yield the names whose content is other than it was; what is declared counts whether it is asked about or not."""
    for name in {*before, *now}:
        if name not in now:
            # only what was asked about can be missed: other items were not
            # evaluated now
            if name.startswith("=") or any(
                f"{name.rstrip('/')}/".startswith(f"{item.rstrip('/')}/")
                for item in asked
            ):
                yield name
        elif now[name] != before.get(name, "absent"):
            yield name


def _grant_of(content: JSONValue, folder: str, kind: str) -> Grant | None:
    kinds = _kinds(_folders(content), folder)
    if kind in kinds:
        return _read_grant(kinds[kind], folder, kind)
    return None


def _folders(content: JSONValue) -> Mapping[str, JSONValue]:
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ValueError("the file holds no object; remove it")
    return content


def _kinds(folders: Mapping[str, JSONValue], folder: str) -> Mapping[str, JSONValue]:
    kinds = folders.get(folder, {})
    if not isinstance(kinds, Mapping):
        raise ValueError(f"the entry {folder!r} is no object; remove it")
    return kinds


def _read_grant(entry: JSONValue, folder: str, kind: str) -> Grant:
    fields = as_object(entry)
    items, granted = fields.get("items"), fields.get("granted")
    if not isinstance(items, Mapping) or not isinstance(granted, (int, float)):
        raise ValueError(f"the entry {folder!r}, {kind!r} is damaged; remove it")
    return Grant(
        folder=folder,
        kind=kind,
        items={key: str(value) for key, value in items.items()},
        granted=granted,
    )
