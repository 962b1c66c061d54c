"""Sessions of a project whose folder was renamed or moved: where they are, and bringing them along.

The sessions of a project stand in a folder that is named after its path, so that under
another path they are another project's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.store.index import INDEX, SessionIndex
from amplifier.app.store.migration import Migration
from amplifier.app.store.selection import outlines_in
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_metadata, read_outline
from amplifier.app.store.writer import JOURNAL, TRANSCRIPT, write_record
from amplifier_kit.files.names import folder_name
from amplifier_kit.files.private_append import make_folders
from amplifier_sdk.errors import ConfigError

__all__ = ["MovedProject", "move_sessions", "moved_projects", "project_at"]

_LOOKS: Final = 20
"""How many sessions are asked where they worked."""


@attrs.frozen(kw_only=True)
class MovedProject:
    """A project whose folder is gone, and how many sessions it has."""

    root: Path
    session_count: int


def moved_projects(dirs: AppDirs) -> Iterator[MovedProject]:
    """Yield the projects that this one may have been under another name, or in another folder.

    Their folder is gone, and was called alike or stood beside this one.
    """
    for store in ProjectSessions.every(dirs):
        root = _root_of(store, dirs)
        if root is None or root.exists():
            continue
        if root.name == dirs.root.name or root.parent == dirs.root.parent:
            count = len(os.listdir(store.sessions))
            yield MovedProject(root=root, session_count=count)


def project_at(folder: Path, dirs: AppDirs) -> AppDirs:
    """Return the places of a project whose folder was there; it need not exist any more."""
    root = Path(os.path.realpath(folder))
    return AppDirs(working_dir=root, home=dirs.home, root=root)


def move_sessions(source: AppDirs, target: AppDirs) -> Migration:
    """Move the sessions of a project to another one. It blocks: call it in a thread.

    Raises:
        OSError: the system refuses; what was moved before stays moved.
    """
    from amplifier_kit.files.locks import LockedError

    store = ProjectSessions.of(target)
    moved, open_, taken = list[str](), list[str](), list[str]()
    for outline in outlines_in([ProjectSessions.of(source).sessions]):
        if not outline.is_session:
            continue
        goal = store.sessions / outline.folder.name
        if goal.exists():
            taken.append(outline.session_id)
            continue
        make_folders(store.sessions)
        try:
            _move(outline.folder, goal, source.root, target.root)
        except LockedError:
            open_.append(outline.session_id)
        else:
            moved.append(outline.session_id)
    SessionIndex(source.state / INDEX).forget(
        [folder_name(session_id) for session_id in moved]
    )
    return Migration(moved=tuple(moved), open=tuple(open_), taken=tuple(taken))


def _move(folder: Path, goal: Path, old: Path, new: Path) -> None:
    """Move the folder of a session that nobody has open, and say where it works from now on."""
    from amplifier_kit.files.locks import WriterLock

    with WriterLock.take(folder / JOURNAL), WriterLock.take(folder / TRANSCRIPT):
        with suppress(ConfigError):  # a damaged one is moved as it is
            record = read_metadata(folder)
            if record is not None and Path(record.working_dir).is_relative_to(old):
                below = Path(record.working_dir).relative_to(old)
                record = attrs.evolve(record, working_dir=str(new / below))
                write_record(folder, record)
        folder.rename(goal)
    for name in (JOURNAL, TRANSCRIPT):  # the locks' files went along
        (goal / f"{name}.lock").unlink(missing_ok=True)


def _root_of(store: ProjectSessions, dirs: AppDirs) -> Path | None:
    """Return the folder of the project of a store, by where its sessions worked."""
    try:
        names = sorted(os.listdir(store.sessions))[:_LOOKS]
    except OSError:
        return None
    for name in names:
        worked = read_outline(store.sessions / name).get("working_dir")
        if isinstance(worked, str) and worked:
            for folder in (Path(worked), *Path(worked).parents):
                project = AppDirs(working_dir=folder, home=dirs.home, root=folder)
                if project.state == store.root:
                    return folder
    return None
