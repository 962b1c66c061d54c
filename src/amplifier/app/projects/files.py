"""The files of a project's folder that may be used: those that a person trusted, as they were then."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import FOLDER, AppDirs, is_below
from amplifier.app.plan_entries import named_modules
from amplifier_kit.files.documents import read_text
from amplifier_kit.trust import (
    PROJECT_FILES,
    TrustDecision,
    TrustStore,
    evaluate_project,
)
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "INSTRUCTIONS",
    "INSTRUCTION_FILES",
    "ProjectFiles",
    "UnreadFile",
    "find_unread_files",
    "items_of",
    "name_in",
    "present_items",
]

INSTRUCTIONS: Final = "instructions"
"""The kind of a project's files of which every folder down to the working directory has its own."""

INSTRUCTION_FILES: Final = PROJECT_FILES[INSTRUCTIONS]
"""What such a file is called; of two in a folder the first is read."""

_READERS: Final[Mapping[str, str]] = {
    "hooks": "hooks-shell",
    "mcp": "tool-mcp",
    "plugins": "hooks-shell",
    "skills": "tool-skills",
}
"""The module that reads each kind of a project's files; the kinds that are not here are the application's."""


def items_of(dirs: AppDirs, kind: str) -> tuple[str, ...]:
    """Return the paths below a project's folder of its files of a kind, those of the working directory included.

    Args:
        dirs: where the project is.
        kind: see `PROJECT_FILES`.
    """
    if kind != INSTRUCTIONS:
        return PROJECT_FILES[kind]
    below: tuple[str, ...] = ()
    if dirs.working_dir.is_relative_to(dirs.root):
        below = dirs.working_dir.relative_to(dirs.root).parts
    folders = [dirs.root.joinpath(*below[:depth]) for depth in range(len(below) + 1)]
    return tuple(
        os.path.relpath(folder / name_in(folder), dirs.root) for folder in folders
    )


def name_in(folder: Path) -> str:
    """Return what the file of instructions of a folder is called, which need not be there."""
    # One is often a link to the other, and links cannot be trusted.
    for name in INSTRUCTION_FILES:
        if (folder / name).is_file() and not (folder / name).is_symlink():
            return name
    there = (name for name in INSTRUCTION_FILES if os.path.lexists(folder / name))
    return next(there, INSTRUCTION_FILES[0])


def present_items(decision: TrustDecision) -> Iterator[tuple[str, str]]:
    """Yield the files of a decision that are there, sorted by name, each with its digest."""
    for name, digest in sorted(decision.items.items()):
        if digest != "absent":
            yield name, digest


@attrs.define(eq=False)
class ProjectFiles:
    """What a project brings along, by kind; see `PROJECT_FILES`. Each kind is evaluated once.

    Args:
        dirs: where the project is.
        store: what was trusted; default the person's own.
    """

    dirs: AppDirs
    store: TrustStore = attrs.field(factory=TrustStore.in_home)
    _decisions: dict[str, TrustDecision] = attrs.field(factory=dict, init=False)

    def evaluate(self, kind: str) -> TrustDecision | None:
        """Return whether the files of a kind may be used; `None` where the person's own folder is the project's."""
        if self.dirs.project is None:
            return None
        if kind not in self._decisions:
            items = items_of(self.dirs, kind)
            self._decisions[kind] = evaluate_project(
                self.store, self.dirs.root, kind, items
            )
        return self._decisions[kind]

    def contents(self, kind: str) -> Mapping[str, bytes]:
        """Return the trusted files of a kind by their paths below the project; use these bytes, not the files."""
        decision = self.evaluate(kind)
        if decision is not None and decision.trusted:
            return decision.contents
        return {}

    def untrusted(self, kind: str) -> Mapping[str, bytes]:
        """Return the files of a kind that nobody trusted, by their paths below the project.

        They are there to know the names that they claim, so that no other file takes one of these unnoticed. Of files
        that cannot be read for certain only the paths are known.
        """
        decision = self.evaluate(kind)
        if decision is None or decision.trusted:
            return {}
        return decision.contents or dict.fromkeys(self._listed(kind), b"")

    def lost(self, kind: str) -> str:
        """Say how the files of a kind are other than a person trusted; nothing where they never did."""
        decision = self.evaluate(kind)
        if decision is None:
            return ""
        return self.store.lost(decision)

    def refusal(self, kind: str, path: Path | str) -> str:
        """Say why a name cannot be used that a file which nobody trusted claims, and what helps."""
        decision, reason = self.evaluate(kind), ""
        if decision is not None:
            reason = f" ({decision.reason})"
        place = os.path.relpath(path, self.dirs.root)
        return (
            f"{place} in this folder has this name, and is not trusted{reason}; look at it and run 'amplifier trust',"
            " or use another name"
        )

    def _listed(self, kind: str) -> Iterator[str]:
        """Yield the paths of a kind's files; links are not followed."""
        for item in PROJECT_FILES[kind]:
            top = self.dirs.root / item
            if top.is_file():
                yield item
            for folder, _, names in os.walk(top):
                yield from (
                    os.path.relpath(os.path.join(folder, name), self.dirs.root)
                    for name in names
                )

    @property
    def withheld(self) -> tuple[TrustDecision, ...]:
        """What was evaluated and is not trusted, sorted by kind."""
        return tuple(
            found for _, found in sorted(self._decisions.items()) if not found.trusted
        )

    @property
    def used(self) -> dict[str, dict[str, str]]:
        """What was evaluated, exists and is trusted: digests of files by kind and name."""
        return {
            kind: dict(present_items(found))
            for kind, found in sorted(self._decisions.items())
            if found.trusted and found.contents
        }

    def explain(self, kind: str) -> str:
        """Say why files of a kind are not used, and what helps; nothing where they are, or there are none."""
        decision = self.evaluate(kind)
        if decision is None or decision.trusted:
            return ""
        return f"{decision.reason}; look at what the project brings and run 'amplifier trust'"

    def owns(self, path: Path) -> bool:
        """Whether a path leads into the folder of the project's own files."""
        return self.dirs.project is not None and is_below(path, self.dirs.project)

    def read(self, kind: str, path: Path) -> bytes:
        """Return a file; of those in the project's own folder, what was trusted.

        Raises:
            ConfigError: it cannot be read, or nobody trusted it.
        """
        if not self.owns(path):
            return read_text(path).encode()
        data = self.contents(kind).get(os.path.relpath(path, self.dirs.root))
        if data is None:
            problem = "it is not among what may be used of this folder"
            if withheld := self.explain(kind):
                problem += f" ({withheld})"
            raise ConfigError.of(str(path), problem, subject="files of the project")
        return data

    def require_own(self, path: Path, other: Path) -> None:
        """Refuse a file of the project that one of its own names, and that trusting those does not cover.

        Args:
            path: the file that names the other.
            other: the file that is named.

        Raises:
            ConfigError: says where it would have to stand.
        """
        is_of_project = is_below(other, self.dirs.root)
        if self.owns(path) and is_of_project and not self.owns(other):
            problem = (
                f"a file of the project must stand in its folder {FOLDER} to be trusted"
            )
            raise ConfigError.of(str(other), problem, subject="files of the project")


@attrs.frozen
class UnreadFile:
    """A file or folder of the project, by its path there, and the module that would read it."""

    path: str
    module: str

    @property
    def remedy(self) -> str:
        """The command that lets new sessions read it."""
        if self.module == _READERS["mcp"]:
            # It shows what would be connected to, and asks.
            return "amplifier mcp add"
        return f"amplifier module add {self.module}"


def find_unread_files(root: Path, plan: Mapping[str, JSONValue]) -> list[UnreadFile]:
    """Return the files of a project that would take effect if the plan had the module that reads them.

    Args:
        root: the project's folder.
        plan: the session's mount plan.
    """
    mounted = {entry.get("module") for _, entry in named_modules(plan)}
    return [
        UnreadFile(path, module)
        for kind, module in _READERS.items()
        if module not in mounted
        for path in PROJECT_FILES[kind]
        if (root / path).exists()
    ]
