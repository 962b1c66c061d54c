"""Changing settings on behalf of a person; what they change of a project they trust."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from amplifier.app.places import Places
from amplifier.app.projects import ProjectFiles
from amplifier.app.settings.editing import change_setting
from amplifier.app.settings.layers import SCOPES, Key, Scope, read_layer
from amplifier.app.settings.settings import settings_file
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.atomic import write_atomically
from amplifier_sdk.kit.documents import read_text
from amplifier_sdk.kit.trust import PROJECT_FILES, TrustStore

__all__ = ["change", "edit"]


def change(scope: str, key: Key, value: JSONValue, places: Places | None = None, session: Path | None = None) -> Path:
    """Set a value in a scope's file, or take it away with `None`, and return the file.

    A project's settings that were trusted, or did not exist, are trusted as they are afterwards.

    Args:
        scope: `session`, `local`, `project` or `user`.
        key: names and indexes from the outside in.
        value: JSON data.
        places: where the files stand; default for the working directory.
        session: a session's own folder.

    Raises:
        ConfigError: the file would not be sound; it stays as it was.
        AmplifierError: the scope has no file here, what changes it is not installed, or others wrote it.
        OSError: the file cannot be written.
    """
    places = places or Places.find()
    known, path = _file(scope, places, session)
    if scope not in ("project", "local"):
        change_setting(known, path, key, value)
        return path
    _require_trust(places)
    change_setting(known, path, key, value)
    _trust(places)
    return path


def edit(scope: str, editor: Callable[[str], str | None], places: Places | None = None) -> Path | None:
    """Let a person edit a scope's file, keep what is sound, and return the file; `None` where nothing changed.

    Args:
        scope: `local`, `project` or `user`.
        editor: shows a text and returns what became of it; `None` for no change.
        places: where the files stand; default for the working directory.

    Raises:
        ConfigError: what was written is not sound; the file stays as it was, and the message names the place.
        AmplifierError: the scope has no file here, or others wrote it.
        OSError: the file cannot be written.
    """
    places = places or Places.find()
    known, path = _file(scope, places, None)
    if scope in ("project", "local"):
        _require_trust(places)
    before = read_text(path) if path.exists() else ""
    after = editor(before)
    if after is None or after == before:
        return None
    read_layer(known, path, after.encode())
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        write_atomically(path.name, after.encode(), dir_fd=folder, mode=0o600)
    finally:
        os.close(folder)
    if scope in ("project", "local"):
        _trust(places)
    return path


def _file(scope: str, places: Places, session: Path | None) -> tuple[Scope, Path]:
    if scope not in SCOPES:
        raise AmplifierError(f"There is no scope {scope!r}; there are {', '.join(SCOPES)}")
    path = settings_file(scope, places, session)
    if path is None:
        raise AmplifierError(f"There is no scope {scope!r} here; change the scope 'user'")
    return scope, path


def _require_trust(places: Places) -> None:
    before = ProjectFiles(places).judge("settings")
    if before is not None and not before.trusted:
        raise AmplifierError(f"The settings of this folder are not trusted ({before.reason}); run 'amplifier trust'")


def _trust(places: Places) -> None:
    """Trust the project's settings as the person just wrote them."""
    store = TrustStore.in_home()
    decision = store.require(places.root, "settings", PROJECT_FILES["settings"])
    if not decision.trusted:
        store.grant(decision)
