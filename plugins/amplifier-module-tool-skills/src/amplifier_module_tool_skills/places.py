"""Where skills are looked for, and whose they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.trust import TrustStore
from amplifier_kit.trust.untrusted import without_marks
from amplifier_module_tool_skills.skill_folders import (
    BrokenSkill,
    ProjectSkills,
    SkillFolder,
    project_skills,
)

__all__ = ["FOLDERS", "SkillPlaces", "contributed", "places"]

FOLDERS: Final = "skills.folders"
"""The channel: a contributor answers with a list of `SkillFolder`, or of mappings with `path` and `source`."""

_VARIABLE: Final = "AMPLIFIER_SKILLS_DIR"
_LONGEST_SOURCE: Final = 100


@attrs.frozen(kw_only=True)
class SkillPlaces:
    """The folders to look in, the first one with precedence; what is wrong with others; what waits for trust."""

    folders: tuple[SkillFolder, ...]
    broken: tuple[BrokenSkill, ...] = ()
    waiting: tuple[ProjectSkills, ...] = ()


def places(configured: Sequence[str] | None, directory: Path) -> SkillPlaces:
    """Work out where skills are; may block.

    Args:
        configured: the folders of the configuration; `None` means the usual ones.
        directory: the folder in which the person works.
    """
    entries = _usual() if configured is None else configured
    folders: list[SkillFolder] = []
    broken: list[BrokenSkill] = []
    waiting: list[ProjectSkills] = []
    # each once, in the order of precedence
    for entry in dict.fromkeys(entries):
        name = _name_in_project(entry, directory)
        if name is None:
            path = directory / os.path.expanduser(entry)
            folders.append(SkillFolder(path=path, source="person"))
            # the usual folders need not exist; one that a person wrote down does
            if configured is not None and not path.is_dir():
                broken.append(
                    BrokenSkill(place=str(path), problem="there is no such folder")
                )
            continue
        evaluated = project_skills(directory, name, TrustStore.in_home())
        if not evaluated.decision.trusted and os.path.lexists(evaluated.folder.path):
            waiting.append(evaluated)
        folders.append(evaluated.folder)
    return SkillPlaces(
        folders=tuple(folders), broken=tuple(broken), waiting=tuple(waiting)
    )


def contributed(contributions: Iterable[object]) -> SkillPlaces:
    """Read what modules contribute to `skills.folders`."""
    folders: list[SkillFolder] = []
    broken: list[BrokenSkill] = []
    for entry in (entry for entries in contributions for entry in _entries(entries)):
        folder = entry if isinstance(entry, SkillFolder) else _folder(entry)
        if folder is None:
            broken.append(
                BrokenSkill(
                    place=FOLDERS,
                    problem=f"an entry has no absolute path: {entry!r:.200}",
                )
            )
        else:
            folders.append(folder)
    return SkillPlaces(folders=tuple(folders), broken=tuple(broken))


def _usual() -> list[str]:
    named = os.environ.get(_VARIABLE)
    return [
        *([named] if named else []),
        ".amplifier/skills",
        str(amplifier_home() / "skills"),
    ]


def _name_in_project(entry: str, directory: Path) -> str | None:
    """Return the name of a folder that the project brings along; `None` for a folder of the person's own.

    What lies below the working directory is the project's. Where the person works in the home folder itself, which
    holds what they trusted, only what is named relative to it is.
    """
    given = os.path.expanduser(entry)
    path, base = os.path.normpath(directory / given), os.path.normpath(directory)
    home = os.path.realpath(amplifier_home())
    if os.path.realpath(path) == os.path.join(home, "skills"):
        return None
    if os.path.isabs(given) and _is_below(home, os.path.realpath(base)):
        return None
    if _is_below(path, base):
        return PurePath(path).relative_to(base).as_posix()
    real, real_base = os.path.realpath(path), os.path.realpath(base)
    if _is_below(real, real_base):
        return PurePath(real).relative_to(real_base).as_posix()
    return None


def _is_below(path: str, base: str) -> bool:
    return PurePath(path).is_relative_to(base)


def _entries(value: object) -> Iterable[object]:
    if isinstance(value, (list, tuple)):
        return value
    return (value,)


def _folder(entry: object) -> SkillFolder | None:
    if not isinstance(entry, Mapping):
        return None
    path, source = entry.get("path"), entry.get("source")
    if not isinstance(path, (str, Path)) or not os.path.isabs(path):
        return None
    origin = "another module"
    if isinstance(source, str):
        origin = without_marks(source)[:_LONGEST_SOURCE]
    return SkillFolder(path=Path(path), source=origin)
