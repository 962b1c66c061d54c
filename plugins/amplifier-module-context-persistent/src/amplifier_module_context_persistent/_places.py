"""Where things are: the conversation's file, and the files that a configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.names import folder_name
from amplifier_sdk import Coordinator

__all__ = ["archive_of", "resolve", "transcript_path"]

FILE_NAME: Final = "context-messages.jsonl"


def transcript_path(configured: str | None, coordinator: Coordinator) -> Path:
    """Return the file of a session's conversation.

    Without a configured one it is `sessions/ID/context-messages.jsonl` in the application's folder for sessions
    (the capability `session.dir`), else in `AMPLIFIER_HOME`, else in `~/.amplifier`.
    """
    if configured is not None:
        return resolve(configured, coordinator)
    told = coordinator.get_capability("session.dir")
    if isinstance(told, (str, Path)):
        root = Path(told)
    else:
        root = amplifier_home()
    return root / "sessions" / folder_name(coordinator.session_id) / FILE_NAME


def resolve(name: str, coordinator: Coordinator) -> Path:
    """Return a configured path; a relative one begins at the session's working directory."""
    told = coordinator.get_capability("session.working_dir")
    if isinstance(told, (str, Path)):
        base = Path(told)
    else:
        base = Path.cwd()
    return base / Path(name).expanduser()


def archive_of(path: Path) -> Path:
    """Return the file that takes what retention removes from another."""
    return path.with_name(f"{path.stem}.archive{path.suffix}")
