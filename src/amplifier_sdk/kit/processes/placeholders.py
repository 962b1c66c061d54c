"""Places for what does not exist yet, so that a sandbox has something to cover."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

__all__ = ["Placeholders"]


class Placeholders:
    """Empty folders that stand where protected paths are missing, while commands run.

    A path can be made read-only only where something is. The first missing part of each path is made, as an empty
    folder, and taken away when the last command that needs it has ended; what somebody filled meanwhile stays.
    """

    def __init__(self) -> None:
        self._users: dict[str, int] = {}

    @contextmanager
    def standing(self, paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Make what is missing, and yield for each path the part of it that is to be covered."""
        covered = tuple(dict.fromkeys(self._cover(path) for path in paths))
        for path in covered:
            if path in self._users:
                self._users[path] += 1
        try:
            yield covered
        finally:
            for path in covered:
                self._leave(path)

    def _cover(self, path: str) -> str:
        if os.path.lexists(path):
            return path
        parent = os.path.dirname(path)
        if not os.path.lexists(parent) or parent in self._users:
            return self._cover(parent)
        with suppress(OSError):  # a read-only folder protects itself
            os.mkdir(path, 0o755)
            self._users[path] = 0
        return path

    def _leave(self, path: str) -> None:
        if path not in self._users:
            return
        self._users[path] -= 1
        if not self._users[path]:
            del self._users[path]
            with suppress(OSError):  # somebody has put something there
                os.rmdir(path)
