"""The files of a skill: read below its folder, or among those that a person trusted; links lead nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import normpath
from typing import Final, Protocol

import attrs

from amplifier_kit.files.path_rules import SECRET_NAMES
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_kit.files.resolved import printable
from amplifier_sdk.errors import ToolError, did_you_mean

__all__ = ["MAIN", "DiskFiles", "SkillFiles", "TrustedSkillFiles", "is_passed_over"]

MAIN: Final = "SKILL.md"
"""The file that makes a folder a skill."""

_MAX_NAMES: Final = 500
_MAX_DEPTH: Final = 6
# Made by tools, and often thousands of files.
_PASSED_OVER: Final = frozenset({"__pycache__", "node_modules"})


class SkillFiles(Protocol):
    """The files of one skill, by their names relative to its folder."""

    def read(self, name: str, limit: int, /) -> bytes:
        """Return a file's content.

        Args:
            name: its name, such as `references/api.md`.
            limit: how many bytes it may have.

        Raises:
            ToolError: there is no such file, it is elsewhere or protected, or it is larger.
        """
        ...

    def names(self) -> tuple[str, ...]:
        """Return the names of the files beside `SKILL.md` in order, 500 at most."""
        ...


@attrs.frozen
class DiskFiles:
    """The files below a folder, which was no link and lay behind none when the skill was found, and may not be now."""

    folder: Path

    def read(self, name: str, limit: int, /) -> bytes:
        """Return a file's content; see `SkillFiles.read`."""
        paths = ConfinedPaths(
            [self.folder], base=self.folder, denied_names=SECRET_NAMES
        )
        # resolving the folder would follow a link that was put in its place
        if paths.roots[0] != self.folder:
            raise ToolError(
                f"{printable(str(self.folder))}: the folder became a link since the skill was found"
            )
        with paths.locate(name) as resolved, resolved.open_file() as file:
            # one byte more shows that the file is longer, whatever its status says
            data = file.read(limit + 1)
        if len(data) > limit:
            raise ToolError(
                f"{name!r} has more than {limit} bytes; read a part of it by its path"
            )
        return data

    def names(self) -> tuple[str, ...]:
        """Return the names of the files beside `SKILL.md` in order; see `SkillFiles.names`."""
        found: list[str] = []
        # names of files elsewhere must not be shown either
        if os.path.realpath(self.folder) != str(self.folder):
            return ()
        for name in _files(self.folder, "", 0):
            found.append(name)
            if len(found) == _MAX_NAMES:
                break
        return tuple(sorted(found))


@attrs.frozen
class TrustedSkillFiles:
    """Files as they were when a person trusted them, whatever they are by now."""

    contents: Mapping[str, bytes] = attrs.field(repr=False)

    def read(self, name: str, limit: int, /) -> bytes:
        """Return a file's content; see `SkillFiles.read`."""
        # instructions write `./references/api.md` as well
        data = self.contents.get(normpath(name))
        if data is None:
            raise ToolError(
                f"the skill has no file {name!r:.200}{did_you_mean(name[:200], self.names())}"
            )
        if len(data) > limit:
            raise ToolError(
                f"{name!r} has more than {limit} bytes; read a part of it by its path"
            )
        return data

    def names(self) -> tuple[str, ...]:
        """Return the names of the files beside `SKILL.md` in order; see `SkillFiles.names`."""
        return tuple(sorted(printable(name) for name in self.contents if name != MAIN))[
            :_MAX_NAMES
        ]


def is_passed_over(name: str) -> bool:
    """Tell whether a folder of this name is no place for skills or their files."""
    return name.startswith(".") or name in _PASSED_OVER


def _files(folder: Path, prefix: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError:  # what cannot be listed cannot be read either
        return
    for entry in entries:
        name = f"{prefix}{printable(entry.name)}"
        if entry.is_file(follow_symlinks=False) and name != MAIN:
            yield name
        elif (
            entry.is_dir(follow_symlinks=False)
            and depth < _MAX_DEPTH
            and not is_passed_over(entry.name)
        ):
            yield from _files(folder / entry.name, f"{name}/", depth + 1)
