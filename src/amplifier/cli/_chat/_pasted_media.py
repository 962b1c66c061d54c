"""Paths that are pasted: a terminal pastes the path of a file that is dropped on it."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import attrs

from amplifier_sdk.media import MEDIA_HEAD, kind_of, media_type

__all__ = ["PastedMedia", "pasted_media"]

_LONGEST: Final = 4_096
_NOT_IN_MENTIONS: Final = frozenset('"\n')


@attrs.frozen
class PastedMedia:
    """A file whose path was pasted.

    Args:
        path: where it is.
        kind: `image`, `audio`, `document` or `video`, by its bytes.
    """

    path: Path
    kind: str

    @property
    def mention(self) -> str:
        """What the model is shown it by."""
        return f'@"{self.path}"'


def pasted_media(text: str) -> PastedMedia | None:
    """Return the image or other media whose path a text is; `None` for any other text."""
    path = _path(text.strip())
    if path is None or not _NOT_IN_MENTIONS.isdisjoint(str(path)):
        return None
    found = _type_of(path)
    if found is None:
        return None
    return PastedMedia(path, kind_of(found))


def _path(text: str) -> Path | None:
    if not 1 < len(text) <= _LONGEST:
        return None
    if text.startswith("file:///"):
        return Path(unquote(urlsplit(text).path))
    try:
        words = shlex.split(text)  # terminals quote blanks, or put \ before them
    except ValueError:
        return None
    if len(words) == 1 and words[0].startswith("/"):
        return Path(words[0])
    # not all of them do
    if text.startswith("/"):
        return Path(text)
    return None


def _type_of(path: Path) -> str | None:
    try:
        # a pipe without a writer would keep `open` for ever
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return media_type(file.read(MEDIA_HEAD))
    except (OSError, ValueError):
        return None
