"""Why a path cannot be used, each with what to do instead.

```
ToolError
└── PathError                       a path cannot be used; holds `path`
    ├── InvalidPathError            it is no path at all: empty, NUL, `~user`, too long
    ├── PathOutsideError            it leads outside the directories that may be used
    ├── PathDeniedError             it is inside, and protected
    ├── PathMissingError            nothing is there
    ├── PathKindError               a thing of another kind is there: a directory, a FIFO, a device
    ├── SymlinkLoopError            its links form a cycle
    └── PathAccessError             the operating system refused; holds `errno`
UnsupportedPlatformError            (AmplifierError) the platform has no directory handles
```
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from amplifier_sdk.errors import AmplifierError, ToolError

__all__ = [
    "MAX_LINKS",
    "InvalidPathError",
    "PathAccessError",
    "PathDeniedError",
    "PathError",
    "PathKindError",
    "PathMissingError",
    "PathOutsideError",
    "Purpose",
    "SymlinkLoopError",
    "UnsupportedPlatformError",
    "path_refusals",
]

Purpose: TypeAlias = Literal["read", "write"]
"""What the confined paths are for; errors say it."""

MAX_LINKS: Final = 40
"""How many links a path may lead through."""

_REMEDIES: Final[Mapping[int, str]] = {
    errno.EACCES: "this process lacks the permission; ask for it or use another path",
    errno.EPERM: "this process lacks the permission; ask for it or use another path",
    errno.EROFS: "the file system is mounted read-only; use another path",
    errno.ENOSPC: "the disk is full; the old content is untouched; free some space and try again",
    errno.EDQUOT: "the quota is used up; the old content is untouched; free some space and try again",
    errno.EFBIG: "the file would pass the size limit of this process; the old content is untouched; write less",
    errno.ENOTDIR: "one of its directories is not one (any more); list the directory and try again",
    errno.ELOOP: "a part of it became a link while it was used; try again",
    errno.EXDEV: "the new path is on another file system; write the file there and delete this one",
    errno.EEXIST: "something else took the name meanwhile; choose another",
    errno.ESTALE: "read the file again and repeat the change",
    errno.EMFILE: "too many files are open; try again later",
    errno.ENFILE: "too many files are open; try again later",
}


class UnsupportedPlatformError(AmplifierError):
    """The platform cannot open files relative to a directory handle, so paths cannot be confined."""

    def __init__(self) -> None:
        super().__init__(
            "Confined paths need directory handles, which this platform does not offer;"
            " use Linux or macOS (on Windows: WSL)"
        )


class PathError(ToolError):
    """A path cannot be used as asked; `path` is what was given, and the message says what to do instead."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path!r:.300}: {reason}")


class InvalidPathError(PathError):
    """The text is no path at all."""


class PathOutsideError(PathError):
    """The path, or a link on its way, leads outside the directories that may be used."""

    def __init__(self, path: str, roots: Sequence[str], purpose: Purpose) -> None:
        self.roots: tuple[str, ...] = tuple(roots)
        remedy = "the configuration allows no path at all"
        if roots:
            remedy = f"give a path inside {' or '.join(self.roots)}"
        super().__init__(
            path, f"leads outside of what may be used to {purpose}; {remedy}"
        )


class PathDeniedError(PathError):
    """The path is inside and protected; `rule` is the entry that protects it."""

    def __init__(self, path: str, rule: str, purpose: Purpose) -> None:
        self.rule = rule
        super().__init__(
            path,
            f"is protected by the rule {rule!r} and cannot be used to {purpose}; use another path",
        )


class PathMissingError(PathError):
    """Nothing is at the path."""

    def __init__(self, path: str, hint: str = "") -> None:
        remedy = hint or "; list the directory to see what is there"
        super().__init__(path, f"there is no such file or directory{remedy}")


class PathKindError(PathError):
    """The thing at the path is not of the kind asked for."""

    def __init__(self, path: str, kind: str, wanted: str) -> None:
        self.kind = kind
        self.wanted = wanted
        super().__init__(
            path, f"is a {kind}, not a {wanted}; give the path of a {wanted}"
        )


class SymlinkLoopError(PathError):
    """The links on the path form a cycle, or are too many."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path,
            f"its links form a cycle (more than {MAX_LINKS}); give the path of the file itself",
        )


class PathAccessError(PathError):
    """The operating system refused."""

    def __init__(self, path: str, error: OSError) -> None:
        self.errno: int | None = error.errno
        remedy = _REMEDIES.get(error.errno or 0, "check the path and try again")
        super().__init__(path, f"{(error.strerror or str(error)).lower()}: {remedy}")


@contextmanager
def path_refusals(path: str) -> Iterator[None]:
    """Raise what the operating system refuses inside the block as a `PathError` about `path`."""
    try:
        yield
    except FileNotFoundError as error:
        raise PathMissingError(path) from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidPathError(
                path, "a name in it is too long for the file system; shorten it"
            ) from error
        raise PathAccessError(path, error) from error
