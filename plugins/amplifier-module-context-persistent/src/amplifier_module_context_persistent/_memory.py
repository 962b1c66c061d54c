"""The files of a conversation: its own, and those that it begins with, as instructions."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from amplifier_kit.files.session_folders import session_folder, working_directory
from amplifier_sdk import ConfigError, Coordinator, MessageDict
from amplifier_sdk.errors import Problem

__all__ = ["archive_of", "read_memory", "resolve", "system_message", "transcript_path"]

FILE_NAME: Final = "context-messages.jsonl"

BYTES_PER_TOKEN: Final = 8
"""No text has more bytes for each of its tokens; what is larger is too large without being read."""


def read_memory(paths: Sequence[Path], max_tokens: int) -> list[MessageDict]:
    """Read the files, each as one system message; this blocks.

    Raises:
        ConfigError: one cannot be read, is no text in UTF-8, or is larger than the whole budget.
    """
    messages: list[MessageDict] = []
    problems: list[Problem] = []
    for index, path in enumerate(paths):
        try:
            text = _read(path, max_tokens * BYTES_PER_TOKEN)
        except (OSError, ValueError) as error:
            problems.append(
                Problem(f"memory_files[{index}]", f"{path} cannot be read: {error}")
            )
            continue
        messages.append(
            {
                **system_message(text),
                "metadata": {"source": "memory", "path": str(path)},
            }
        )
    if problems:
        raise ConfigError(problems, subject="configuration of context-persistent")
    return messages


def system_message(text: str) -> MessageDict:
    """Make a message that instructs."""
    return {"role": "system", "content": text}


def _read(path: Path, limit: int) -> str:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
        raise ValueError("it is no regular file")
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(
            f"it has more than {limit:,} bytes, and the budget is {limit // BYTES_PER_TOKEN:,} tokens"
        )
    return data.decode("utf-8")


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
