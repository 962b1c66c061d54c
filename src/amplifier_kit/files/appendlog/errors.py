"""What can go wrong with a log; a log that somebody else writes is a `LockedError` of `amplifier_kit.files.locks`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["AppendError", "LogFormatError"]


class AppendError(OSError):
    """A record could not be stored: the log ends with the one before, and takes the next when the cause is gone.

    `errno` is the system's.
    """

    def __init__(self, cause: OSError, path: Path, size: int) -> None:
        text = f"{cause.strerror or cause}; nothing of the {size:,} bytes was stored. Remedy that and go on"
        super().__init__(cause.errno, text, str(path))


class LogFormatError(ValueError):
    """The file is no log, one of something else, or one that a newer version wrote; it was left alone."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")
