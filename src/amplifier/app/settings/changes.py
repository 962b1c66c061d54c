"""Changing settings on behalf of a person; what they change of a project they trust."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.projects.trust import trust_again
from amplifier.app.settings.editor import Revision, change_settings, rewrite
from amplifier.app.settings.layers import SCOPES, Key, Scope
from amplifier.app.settings.settings import settings_file
from amplifier_kit.files.documents import read_text
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["change", "edit", "revise"]


def change(
    scope: str,
    key: Key,
    value: JSONValue,
    dirs: AppDirs | None = None,
    session: Path | None = None,
) -> Path:
    """Set a value in a scope's file, or take it away with `None`, and return the file.

    A project's settings that were trusted, or did not exist, are trusted as they are afterwards.

    Args:
        scope: `session`, `local`, `project` or `user`.
        key: names and indexes from the outside in.
        value: JSON data.
        dirs: where the files stand; default for the working directory.
        session: a session's own folder.

    Raises:
        ConfigError: the file would not be sound; it stays as it was.
        AmplifierError: the scope has no file here, what changes it is not installed, or others wrote it.
        OSError: the file cannot be written.
    """
    return revise(scope, lambda _: [(key, value)], dirs, session)


def revise(
    scope: str,
    revision: Revision,
    dirs: AppDirs | None = None,
    session: Path | None = None,
) -> Path:
    """Change what a scope's file holds, all of it at once, and return the file; as `change` else.

    Args:
        scope: `session`, `local`, `project` or `user`.
        revision: says what is changed, from what the file holds when nobody else changes it any more.
        dirs: where the files stand; default for the working directory.
        session: a session's own folder.

    Raises:
        ConfigError: the file would not be sound; it stays as it was.
        AmplifierError: the scope has no file here, what changes it is not installed, or others wrote it.
        OSError: the file cannot be written.
    """
    dirs = dirs or AppDirs.find()
    known, path = _file(scope, dirs, session)
    with _trusted(known, path, dirs):
        change_settings(known, path, revision)
    return path


def edit(
    scope: str, editor: Callable[[str], str | None], dirs: AppDirs | None = None
) -> Path | None:
    """Let a person edit a scope's file, keep what is sound, and return the file; `None` where nothing changed.

    Args:
        scope: `local`, `project` or `user`.
        editor: shows a text and returns what became of it; `None` for no change.
        dirs: where the files stand; default for the working directory.

    Raises:
        ConfigError: what was written is not sound; the file stays as it was, and the message names the place.
        AmplifierError: the scope has no file here, or others wrote it.
        OSError: the file cannot be written.
    """
    dirs = dirs or AppDirs.find()
    known, path = _file(scope, dirs, None)
    with _trusted(known, path, dirs):
        before = ""
        if path.exists():
            before = read_text(path)
    after = editor(before)
    if after is None or after == before:
        return None

    def edited(now: str) -> str:
        if now != before:
            raise AmplifierError(
                f"{path} was changed while it was edited, and stays as it is now; edit it again"
            )
        return after

    with _trusted(known, path, dirs):
        rewrite(known, path, edited)
    return path


def _file(scope: str, dirs: AppDirs, session: Path | None) -> tuple[Scope, Path]:
    message = f"There is no scope {scope!r}"
    if scope not in SCOPES:
        raise AmplifierError(f"{message}; there are {', '.join(SCOPES)}")
    path = settings_file(scope, dirs, session)
    if path is None:
        raise AmplifierError(f"{message} here; change the scope 'user'")
    return scope, path


def _trusted(scope: Scope, path: Path, dirs: AppDirs) -> AbstractContextManager[None]:
    """Keep a project's settings trusted while their file is changed, where that is a project's."""
    is_of_project = scope in ("project", "local")
    changed = [f"{FOLDER}/{path.name}"] if is_of_project else []
    return trust_again(dirs, "settings", changed)
