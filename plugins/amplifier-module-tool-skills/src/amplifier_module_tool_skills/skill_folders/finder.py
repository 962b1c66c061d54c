"""Skills in a folder: those that can be used, and those that are broken, each with its problem."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

import attrs

from amplifier_kit.files.resolved import printable
from amplifier_module_tool_skills.skill_folders.files import (
    MAIN,
    DiskFiles,
    SkillFiles,
    TrustedSkillFiles,
    is_passed_over,
)
from amplifier_module_tool_skills.skill_folders.head import (
    SkillError,
    SkillHead,
    parse_skill,
)

__all__ = [
    "MAX_SKILL_BYTES",
    "BrokenSkill",
    "FoundSkills",
    "Skill",
    "SkillFolder",
    "find_skills",
]

MAX_SKILL_BYTES: Final = 1_000_000
"""How many bytes a `SKILL.md` may have."""

_MAX_DEPTH: Final = 4
_MAX_FOLDERS: Final = 5_000
_TIMEOUT: Final = 20.0
"""Seconds after which a search ends; a thousand skills take a third of one."""
_OPEN: Final[int] = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


@attrs.frozen(kw_only=True)
class SkillFolder:
    """A folder of skills, or one skill.

    Args:
        path: where it is.
        source: whose it is, in a word or two: `person`, `project`, `plugin:NAME`.
        is_trusted: whether somebody stands for what it says; what nobody stands for gives a model no orders.
        contents: the files below it as they were evaluated, by name; `None` means that they are read from the disk.
    """

    path: Path
    source: str
    is_trusted: bool = True
    contents: Mapping[str, bytes] | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class Skill:
    """A skill that can be used; its body is read when it is needed."""

    head: SkillHead
    folder: Path
    source: str
    is_trusted: bool = True
    files: SkillFiles = attrs.field(repr=False)

    @property
    def name(self) -> str:
        """The skill's name."""
        return self.head.name


@attrs.frozen(kw_only=True)
class BrokenSkill:
    """A skill that cannot be used: where it is, and why."""

    place: str
    problem: str


@attrs.frozen(kw_only=True)
class FoundSkills:
    """What a folder holds, in the order of the paths."""

    skills: tuple[Skill, ...] = ()
    broken: tuple[BrokenSkill, ...] = ()


def find_skills(folder: SkillFolder) -> FoundSkills:
    """Find the skills in a folder, four levels deep; a skill's own folders are not searched.

    A folder that does not exist holds nothing. Of links those are followed that stand directly in the folder and
    lead to a skill; a `SKILL.md` that is a link itself is broken.
    """
    search = _Search(folder)
    # What was trusted is searched as it was then, and not as the disk has it now.
    if folder.contents is not None:
        search.among(folder.contents)
    else:
        search.below(folder.path)
    return FoundSkills(skills=tuple(search.skills), broken=tuple(search.broken))


@attrs.define(eq=False)
class _Search:
    """One search; `seen` are the real folders of the skills that were found."""

    folder: SkillFolder
    skills: list[Skill] = attrs.field(factory=list)
    broken: list[BrokenSkill] = attrs.field(factory=list)
    seen: set[str] = attrs.field(factory=set)
    visited: int = 0
    end: float = attrs.field(factory=lambda: monotonic() + _TIMEOUT)

    def below(self, path: Path) -> None:
        """Search the disk."""
        for root in self._roots(path, 0):
            if self._is_late():
                return
            real = os.path.realpath(root)
            # a link may lead to a skill that stands in the folder itself
            if real not in self.seen:
                self.seen.add(real)
                self._take_folder(root, Path(real))

    def among(self, contents: Mapping[str, bytes]) -> None:
        """Search files that were evaluated."""
        roots = {
            name.removesuffix(MAIN)
            for name in contents
            if name == MAIN or name.endswith(f"/{MAIN}")
        }
        roots = {root for root in roots if _is_searched(root)}
        files: dict[str, dict[str, bytes]] = {}
        for name, data in contents.items():
            root = _root_of(name, roots)
            if root is not None:
                files.setdefault(root, {})[name.removeprefix(root)] = data
        for root, found in sorted(files.items()):
            if self._is_late():
                return
            self._take(self.folder.path / root, found[MAIN], TrustedSkillFiles(found))

    def _is_late(self) -> bool:
        if monotonic() < self.end:
            return False
        self._note(
            self.folder.path,
            f"the search took longer than {_TIMEOUT:g} s; the other skills are not read",
        )
        return True

    def _roots(self, path: Path, depth: int) -> Iterator[Path]:
        """Yield the folders of skills, in the order of the paths."""
        entries = self._listed(path)
        if any(entry.name == MAIN for entry in entries):
            yield path
            return
        for entry in entries:
            if is_passed_over(entry.name):
                continue
            if entry.is_symlink():
                # deeper links may lead out of the folder, or back into it
                if depth == 0 and (path / entry.name / MAIN).is_file():
                    yield path / entry.name
            elif depth < _MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                yield from self._roots(path / entry.name, depth + 1)

    def _listed(self, path: Path) -> list[os.DirEntry[str]]:
        self.visited += 1
        if self.visited > _MAX_FOLDERS:
            # noted once, not for each folder that follows
            if self.visited == _MAX_FOLDERS + 1:
                self._note(
                    self.folder.path,
                    f"it holds more than {_MAX_FOLDERS} folders; the others are not searched",
                )
            return []
        try:
            with os.scandir(path) as listed:
                return sorted(listed, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._note(path, f"it cannot be listed: {error.strerror}")
            return []

    def _take_folder(self, shown: Path, real: Path) -> None:
        try:
            data = _read_main(real)
        except OSError as error:
            is_link = error.errno in (errno.ELOOP, errno.EMLINK)
            problem = "SKILL.md is a link; put the file itself there"
            if not is_link:
                problem = f"SKILL.md: {error.strerror}"
            self._note(shown, problem)
        except SkillError as error:
            self._note(shown, str(error))
        else:
            self._take(real, data, DiskFiles(real))

    def _take(self, path: Path, data: bytes, files: SkillFiles) -> None:
        try:
            head = parse_skill(_text(data), printable(path.name)).head
        except SkillError as error:
            self._note(path, str(error))
            return
        folder = self.folder
        self.skills.append(
            Skill(
                head=head,
                folder=path,
                source=folder.source,
                is_trusted=folder.is_trusted,
                files=files,
            )
        )

    def _note(self, path: Path, problem: str) -> None:
        self.broken.append(BrokenSkill(place=printable(str(path)), problem=problem))


def _is_searched(root: str) -> bool:
    parts = root.split("/")[:-1]
    return len(parts) <= _MAX_DEPTH and not any(map(is_passed_over, parts))


def _root_of(name: str, roots: Collection[str]) -> str | None:
    """Return the skill's folder that a file is in, the outermost of several."""
    ends = (0, *(index + 1 for index, character in enumerate(name) if character == "/"))
    # the outermost, as on the disk, where a skill's folders are not searched
    return next((name[:end] for end in ends if name[:end] in roots), None)


def _read_main(folder: Path) -> bytes:
    with open(os.open(folder / MAIN, _OPEN), "rb") as file:
        # the open file is asked, since the name may stand for another by now
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SkillError("SKILL.md is no regular file")
        # one byte more than may be shows that there is more
        return file.read(MAX_SKILL_BYTES + 1)


def _text(data: bytes) -> str:
    if len(data) > MAX_SKILL_BYTES:
        raise SkillError(
            f"SKILL.md has more than {MAX_SKILL_BYTES} bytes; move parts of it to files of their own"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillError(
            f"SKILL.md is not UTF-8 at byte {error.start}; save it as UTF-8"
        ) from error
