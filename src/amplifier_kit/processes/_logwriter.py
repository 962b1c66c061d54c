"""Writes the logs that `logs` reads; of the standard library alone, since the keeper has nothing else."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

__all__ = ["OutputLogWriter"]

_MODE: Final = 0o600


class OutputLogWriter:
    """Writes a log.

    Args:
        name: the path of the log without its suffix.
        size: bytes in one file.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._starts = [0]
        self._total = 0
        self._open(0)

    def write(self, data: bytes) -> None:
        """Append output, in as many files as it takes."""
        while data:
            room = self._starts[-1] + self._size - self._total
            if room <= 0:
                self._turn()
                continue
            piece, data = data[:room], data[room:]
            # A full disk must not stop the command: what cannot be stored is lost, and its place stays empty.
            with suppress(OSError), open(self._path(self._starts[-1]), "r+b") as file:
                file.seek(self._total - self._starts[-1])
                file.write(piece)
            self._total += len(piece)

    def _turn(self) -> None:
        self._starts.append(self._total)
        self._open(self._total)
        if len(self._starts) > 2:
            with suppress(OSError):
                os.unlink(self._path(self._starts.pop(0)))

    def _open(self, start: int) -> None:
        with suppress(OSError):
            os.close(
                os.open(self._path(start), os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
            )

    def _path(self, start: int) -> str:
        return f"{self._name}.{start}"
