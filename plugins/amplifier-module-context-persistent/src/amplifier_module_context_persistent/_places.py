"""Where things are: the conversation's file, and the files that a configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from amplifier_kit.files.session_folders import session_folder, working_directory
from amplifier_sdk import Coordinator

__all__ = ["archive_of", "resolve", "transcript_path"]

FILE_NAME: Final = "context-messages.jsonl"


def transcript_path(configured: str | None, coordinator: Coordinator) -> Path:
    """Return the file of a session's conversation.

    Without a configured one it is `context-messages.jsonl` in the session's folder.
    """
    if configured is not None:
        return resolve(configured, coordinator)
    return session_folder(coordinator) / FILE_NAME


def resolve(name: str, coordinator: Coordinator) -> Path:
    """Return a configured path; a relative one begins at the session's working directory."""
    return working_directory(coordinator) / Path(name).expanduser()


def archive_of(path: Path) -> Path:
    """Return the file that takes what retention removes from another."""
    return path.with_name(f"{path.stem}.archive{path.suffix}")
