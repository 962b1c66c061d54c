"""The profiles that a person writes: made, edited and removed as files of their own folder or of the project's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.profiles.documents import parse_file
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.profiles.selection import active_profile
from amplifier.app.projects.trust import trust_again
from amplifier.app.settings.settings import load_settings
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.documents import read_text
from amplifier_sdk.errors import AmplifierError, ConfigError

__all__ = ["SCOPES", "edit_profile", "new_profile", "remove_profile"]

SCOPES: Final = ("project", "user")
"""Whose a profile can be."""

_KIND: Final = "profiles"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TEMPLATE: Final = """---
profile:
  name: {name}
  description: {description}
{extends}---
You help with the work in this folder. Say what you did and how you checked it.
"""


def new_profile(
    dirs: AppDirs,
    name: str,
    *,
    scope: str = "user",
    extends: str | None = None,
    description: str = "",
) -> Path:
    """Write a profile and return its file.

    Args:
        dirs: where the files stand.
        name: what it is called.
        scope: `project` or `user`.
        extends: the profile that it builds on, which must be there.
        description: what it says of itself.

    Raises:
        ConfigError: there is one of that name in that scope, or `extends` cannot be found.
        AmplifierError: the name is none for a file, the scope has no folder here, or others wrote the project's.
        OSError: it cannot be written.
    """
    path = _path(dirs, name, scope)
    if path.exists():
        message = f"{path} is there already; 'amplifier profile edit {name}' changes it"
        raise ConfigError.of(name, message, subject="new profile")
    if extends is not None:
        ProfileLibrary.of(dirs).find(extends)
    # JSON is YAML: no text that a person gives can end its line.
    text = _TEMPLATE.format(
        name=json.dumps(name),
        description=json.dumps(description, ensure_ascii=False),
        extends="" if extends is None else f"  extends: {json.dumps(extends)}\n",
    )
    _write(dirs, path, scope, text)
    return path


def edit_profile(
    dirs: AppDirs, name: str, editor: Callable[[str], str | None], *, scope: str
) -> Path | None:
    """Let a person edit a profile of theirs, keep what is sound, and return the file; `None` where nothing changed.

    Args:
        dirs: where the files stand.
        name: what it is called.
        editor: shows a text and returns what became of it; `None` for no change.
        scope: `project` or `user`.

    Raises:
        ConfigError: there is none, or what was written is not sound; the file stays as it was.
        AmplifierError: the scope has no folder here, or others wrote the project's.
        OSError: it cannot be read or written.
    """
    path = _existing(dirs, name, scope)
    with _trusted(dirs, path, scope):
        before = read_text(path)
    after = editor(before)
    if after is None or after == before:
        return None
    if read_text(path) != before:
        raise AmplifierError(
            f"{path} was changed while it was edited, and stays as it is now; edit it again"
        )
    _write(dirs, path, scope, after)
    return path


def remove_profile(dirs: AppDirs, name: str, *, scope: str) -> Path:
    """Delete a profile of a person's and return where its file stood.

    Args:
        dirs: where the files stand.
        name: what it is called.
        scope: `project` or `user`.

    Raises:
        ConfigError: there is none, or new sessions are made of it.
        AmplifierError: the scope has no folder here, or others wrote the project's.
        OSError: it cannot be removed.
    """
    path = _existing(dirs, name, scope)
    if active_profile(load_settings(dirs)) == name:
        problem = "new sessions are made of it; 'amplifier profile reset' or 'profile use' chooses another first"
        raise ConfigError.of(name, problem, subject="choice of a profile")
    with _trusted(dirs, path, scope):
        path.unlink()
    return path


def _existing(dirs: AppDirs, name: str, scope: str) -> Path:
    path = _path(dirs, name, scope)
    if path.is_file():
        return path
    problem = f"there is no {path}"
    if name in ProfileLibrary.of(dirs).names():
        problem += f"; the profile of this name is not yours: 'amplifier profile new NAME --extends {name}' makes one"
    raise ConfigError.of(name, problem, subject="choice of a profile")


def _path(dirs: AppDirs, name: str, scope: str) -> Path:
    if not _NAME.fullmatch(name):
        raise AmplifierError(
            f"{name!r} is no name for a profile of your own: letters, digits, '.', '_' and '-', at most 64"
        )
    folder = dirs.home if scope == "user" else dirs.project
    if folder is None:
        raise AmplifierError(
            f"There is no scope {scope!r} here, in your home folder; use --scope user"
        )
    return folder / _KIND / f"{name}.md"


def _write(dirs: AppDirs, path: Path, scope: str, text: str) -> None:
    parse_file(text.encode(), kind="profile", path=path, level=scope, name=path.stem)
    with _trusted(dirs, path, scope):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, text.encode())


def _trusted(dirs: AppDirs, path: Path, scope: str) -> AbstractContextManager[None]:
    """Keep a project's profiles trusted while one is changed, where that is a project's."""
    if scope != "project":
        return trust_again(dirs, _KIND, [])
    # A folder that is made for it is the person's doing too.
    changed = f"{FOLDER}/{_KIND}"
    if path.parent.exists():
        changed += f"/{path.name}"
    return trust_again(dirs, _KIND, [changed])
