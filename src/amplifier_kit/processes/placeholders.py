"""AppDirs for what does not exist yet, so that a sandbox has something to cover."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["Placeholders"]


class Placeholders:
    """What stands where protected paths are missing, while commands run.

    A path can be made read-only only where something is. The first missing part of each path is made, as an empty
    folder or a file, and taken away when the last command that needs it has ended; what somebody changed meanwhile
    stays.

    Args:
        files: what the files among them hold, by how their paths end.
    """

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self._files = dict(files or {})
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
            content = self._content_of(path)
            if content is None:
                os.mkdir(path, 0o755)
            else:
                with Path(path).open("x") as file:
                    file.write(content)
            self._users[path] = 0
        return path

    def _content_of(self, path: str) -> str | None:
        return next(
            (
                content
                for end, content in self._files.items()
                if path.endswith(f"/{end}")
            ),
            None,
        )

    def _leave(self, path: str) -> None:
        if path not in self._users:
            return
        self._users[path] -= 1
        if not self._users[path]:
            del self._users[path]
            with suppress(OSError):  # somebody has put something there
                if self._content_of(path) is None:
                    os.rmdir(path)
                elif Path(path).read_text("utf-8", "replace") == self._content_of(path):
                    os.unlink(path)
