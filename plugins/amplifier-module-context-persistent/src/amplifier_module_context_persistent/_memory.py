"""Files that a conversation begins with, as instructions."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from amplifier_sdk import ConfigError, MessageDict
from amplifier_sdk.errors import Problem

__all__ = ["read_memory", "system_message"]

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


def _read(path: Path, most: int) -> str:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
        raise ValueError("it is no regular file")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(
            f"it has more than {most:,} bytes, and the budget is {most // BYTES_PER_TOKEN:,} tokens"
        )
    return data.decode("utf-8")
