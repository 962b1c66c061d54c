"""What was typed in a project's chats, for the arrow keys: one private file, bounded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.private_append import make_folders, open_private, write_whole
from amplifier_kit.redaction import StrictRedactor

__all__ = ["HistoryFile"]

NAME: Final = "chat-history.jsonl"
MOST: Final = 1000
"""How many texts are remembered; the file has at most twice as many."""

_MAX_BYTES: Final = 4_000_000
_LONGEST: Final = 10_000


class HistoryFile(History):
    """The texts of a project, without secrets. One that begins with a blank, or is very long, is not written.

    A file that cannot be read or written costs the memory of the arrow keys, and nothing else.

    Args:
        folder: where the project's state is stored.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def load_history_strings(self) -> Iterable[str]:
        """Return the texts, the latest first; the file is shortened where it grew too long."""
        texts = self._read()
        if len(texts) > MOST:
            texts = texts[-MOST:]
            data = "".join(json.dumps(text) + "\n" for text in texts).encode()
            with suppress(OSError):
                write_private(self._folder / NAME, data)
        return reversed(texts)

    def store_string(self, string: str) -> None:
        """Write a text behind the others."""
        # A leading blank keeps a line out of the history, as in most shells.
        if string[:1].isspace() or len(string) > _LONGEST:
            return
        # A prompt with a key in it is typed once, and would stay here for years.
        line = json.dumps(StrictRedactor().redact_text(string)) + "\n"
        with suppress(OSError):
            make_folders(self._folder)
            with closing_handle(open_private(self._folder / NAME)) as handle:
                write_whole(handle, line.encode())

    def _read(self) -> list[str]:
        try:
            with (self._folder / NAME).open("rb") as file:
                # Cut at a byte, so the first line may be torn; `_text` drops it.
                file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return []
        return [text for line in lines if (text := _text(line))]


def _text(line: str) -> str:
    """Read a line; one that is torn is nothing."""
    try:
        value: object = json.loads(line)
    except ValueError:
        return ""
    if isinstance(value, str):
        return value
    return ""
