"""Paths that stay inside some directories, whatever links and races do.

Checking a path and opening it by name afterwards are two walks, and a directory swapped for a link between
them leads the second one astray. Here there is one walk: every directory is opened relative to the handle
of the one above it, without following links, and what was reached is used through that handle. A link is
read and its target walked in the same way, so that a link to a place inside works and one to a place
outside is refused.

```
ToolError
└── PathError                       a path cannot be used; holds `path`
    ├── InvalidPathError            it is no path at all: empty, NUL, `~user`, too long
    ├── PathOutsideError            it leads outside the directories that may be used
    ├── PathDeniedError             it is inside, and protected
    ├── PathMissingError            nothing is there
    ├── PathKindError               a thing of another kind is there: a directory, a FIFO, a device
    ├── SymlinkLoopError            its links lead round in a circle
    └── PathAccessError             the operating system refused; holds `errno`
UnsupportedPlatformError            (AmplifierError) the platform has no directory handles
```
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_sdk.errors import AmplifierError, ToolError, did_you_mean

__all__ = [
    "ConfinedPaths",
    "InvalidPathError",
    "PathAccessError",
    "PathDeniedError",
    "PathError",
    "PathKindError",
    "PathMissingError",
    "PathOutsideError",
    "Purpose",
    "Spot",
    "SymlinkLoopError",
    "UnsupportedPlatformError",
    "describe_kind",
    "path_refusals",
    "printable",
]

Purpose: TypeAlias = Literal["read", "write"]
"""What the confined paths are for; errors say it."""

_MAX_PATH_CHARACTERS: Final = 4096
_MAX_LINKS: Final = 40
_MAX_STEPS: Final = 4096
_MAX_NAMES_COMPARED: Final = 1000

# Windows lacks these flags; there the constructor refuses before any of them is used.
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# Passing through a directory asks for search permission only, which Linux has a flag for.
_PASS: Final[int] = getattr(os, "O_PATH", os.O_RDONLY) | _DIRECTORY
# A FIFO or a terminal that takes the place of a file must neither block the opening nor take control.
_FILE: Final[int] = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)

_KINDS: Final[Mapping[int, str]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}

_REMEDIES: Final[Mapping[int, str]] = {
    errno.EACCES: "this process lacks the permission; ask for it or use another path",
    errno.EPERM: "this process lacks the permission; ask for it or use another path",
    errno.EROFS: "the file system is mounted read-only; use another path",
    errno.ENOSPC: "the disk is full; the old content is untouched; free some space and try again",
    errno.EDQUOT: "the quota is used up; the old content is untouched; free some space and try again",
    errno.EFBIG: "the file would pass the size limit of this process; the old content is untouched; write less",
    errno.ENOTDIR: "one of its directories is not one (any more); list the directory and try again",
    errno.ELOOP: "a part of it became a link while it was used; try again",
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
        remedy = f"give a path inside {' or '.join(self.roots)}" if roots else "the configuration allows no path at all"
        super().__init__(path, f"leads outside of what may be used to {purpose}; {remedy}")


class PathDeniedError(PathError):
    """The path is inside and protected; `rule` is the entry that protects it."""

    def __init__(self, path: str, rule: str, purpose: Purpose) -> None:
        self.rule = rule
        super().__init__(path, f"is protected by the rule {rule!r} and cannot be used to {purpose}; use another path")


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
        super().__init__(path, f"is a {kind}, not a {wanted}; give the path of a {wanted}")


class SymlinkLoopError(PathError):
    """The links on the path lead round in a circle, or are too many."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path, f"its links lead round in a circle (more than {_MAX_LINKS}); give the path of the file itself"
        )


class PathAccessError(PathError):
    """The operating system refused."""

    def __init__(self, path: str, error: OSError) -> None:
        self.errno: int | None = error.errno
        remedy = _REMEDIES.get(error.errno or 0, "check the path and try again")
        super().__init__(path, f"{(error.strerror or str(error)).lower()}: {remedy}")


def printable(name: str) -> str:
    """Write the bytes of a name that are no UTF-8 as escapes, so that the name can be stored and sent."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def describe_kind(mode: int) -> str:
    """Name the kind of a file from its mode: `file`, `directory`, `link`, `FIFO` and so on."""
    return _KINDS.get(stat.S_IFMT(mode), "special file")


@contextmanager
def path_refusals(path: str) -> Iterator[None]:
    """Raise what the operating system refuses inside the block as a `PathError` about `path`."""
    try:
        yield
    except FileNotFoundError as error:
        raise PathMissingError(path) from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidPathError(path, "a name in it is too long for the file system; shorten it") from error
        raise PathAccessError(path, error) from error


@attrs.define(eq=False, kw_only=True)
class Spot:
    """A name in an open directory: where a confined path leads.

    Args:
        given: the path as it was given, for messages.
        path: the absolute path with every link resolved.
        directory: the handle of the directory, closed by the walk that made the spot.
        name: the name in it; `.` for a root itself.
        status: what is there, links not followed; `None` when nothing is.
        parents: directories above the name that do not exist; then `directory` is above them.
    """

    given: str
    path: Path
    directory: int
    name: str
    status: os.stat_result | None
    parents: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether something is there."""
        return self.status is not None

    @property
    def shown(self) -> str:
        """The absolute path as text that can be stored and sent."""
        return printable(str(self.path))

    def existing(self) -> os.stat_result:
        """Return the status of what is there.

        Raises:
            PathMissingError: nothing is; names the nearest name in the directory.
        """
        if self.status is None:
            raise PathMissingError(self.given, self._nearest())
        return self.status

    def open_file(self) -> BufferedReader:
        """Open a regular file for reading; the caller closes it. Never waits for a FIFO or device.

        Raises:
            PathError: nothing is there, it is no regular file, or the system refuses.
        """
        self.require("file", self.existing())
        with path_refusals(self.given):
            handle = os.open(self.name, _FILE, dir_fd=self.directory)
        try:
            self.require("file", os.fstat(handle))
            return open(handle, "rb")
        except BaseException:
            os.close(handle)
            raise

    def open_directory(self) -> int:
        """Open a directory for listing and return its handle, which the caller closes.

        Raises:
            PathError: nothing is there, it is no directory, or the system refuses.
        """
        self.require("directory", self.existing())
        with path_refusals(self.given):
            return os.open(self.name, os.O_RDONLY | _DIRECTORY, dir_fd=self.directory)

    def require(self, wanted: Literal["file", "directory"], status: os.stat_result) -> None:
        """Refuse a status of another kind.

        Raises:
            PathKindError: names the kind it is.
        """
        kind = describe_kind(status.st_mode)
        if kind != wanted:
            raise PathKindError(self.given, kind, wanted)

    def make_parents(self) -> None:
        """Create the directories that are missing above the name.

        Raises:
            PathError: the system refuses, or something else took their place.
        """
        while self.parents:
            with path_refusals(self.given):
                self._enter(self.parents[0])
            self.parents = self.parents[1:]

    def _enter(self, name: str) -> None:
        with suppress(FileExistsError):  # somebody else made it meanwhile; a link in its place is refused below
            os.mkdir(name, dir_fd=self.directory)
        inner = os.open(name, _PASS, dir_fd=self.directory)
        os.close(self.directory)
        self.directory = inner

    def _nearest(self) -> str:
        if self.parents:
            return ""
        try:
            handle = os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=self.directory)
        except OSError:
            return ""  # a hint is not worth another error
        try:
            with os.scandir(handle) as entries:
                return did_you_mean(
                    self.name, [printable(entry.name) for entry in islice(entries, _MAX_NAMES_COMPARED)]
                )
        finally:
            os.close(handle)


class ConfinedPaths:
    """The part of the file system under some root directories.

    Args:
        roots: absolute paths of directories; links in them are resolved once, here.
        base: the absolute directory that relative paths start from.
        purpose: what the paths are for; errors say it.
        denied_names: no path may have one of these names below its root, whatever the case.
        denied_paths: absolute paths; neither they nor what is below them may be used.

    Raises:
        UnsupportedPlatformError: the platform has no directory handles.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        base: Path,
        purpose: Purpose = "read",
        denied_names: Collection[str] = (),
        denied_paths: Sequence[Path] = (),
    ) -> None:
        if os.open not in os.supports_dir_fd:
            raise UnsupportedPlatformError
        self.purpose: Final = purpose
        self.base: Final = base
        self.roots: Final = tuple(Path(os.path.realpath(root)) for root in roots)
        self._aliases = _aliases(roots)
        self._denied_names = {_folded(name): name for name in denied_names}
        self._denied_paths = tuple(denied_paths)

    @contextmanager
    def locate(self, path: str) -> Iterator[Spot]:
        """Walk to a path and yield the spot where it leads; its handle is open while the block runs.

        Relative paths start at the base, `~` is the home directory. Nothing need be at the path.

        Raises:
            PathError: the path is invalid, leads outside, is protected, or the walk was refused.
        """
        walk = _Walk(self, path)
        try:
            with path_refusals(path):
                spot = walk.run()
        except BaseException:
            walk.close()
            raise
        try:
            yield spot
        finally:
            os.close(spot.directory)

    def enter(self, path: str, parts: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
        """Find the root that absolute parts lead into, and return its real parts and the rest.

        Raises:
            PathOutsideError: they lead into none.
        """
        reached: list[str] = []
        for index, part in enumerate(("", *parts)):
            if part == "..":
                del reached[-1:]
            elif part not in ("", "."):
                reached.append(part)
            root = self._aliases.get(tuple(reached))
            if root is not None:
                return root, list(parts[index:])
        raise PathOutsideError(path, [str(root) for root in self.roots], self.purpose)

    def check_denied(self, path: str, root: Sequence[str], below: Sequence[str]) -> None:
        """Refuse a protected path; `root` and `below` are its real parts.

        Raises:
            PathDeniedError: names the rule.
        """
        for part in below:
            rule = self._denied_names.get(_folded(part))
            if rule is not None:
                raise PathDeniedError(path, rule, self.purpose)
        parts = [_folded(part) for part in (*root, *below)]
        for denied in self._denied_paths:
            protected = [_folded(part) for part in _parts(os.path.realpath(denied))]
            if parts[: len(protected)] == protected:
                raise PathDeniedError(path, str(denied), self.purpose)


def _aliases(roots: Sequence[Path]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Map the ways to write each root, with links and without, to its real parts."""
    real = [tuple(_parts(os.path.realpath(root))) for root in roots]
    as_given = [tuple(_parts(os.path.normpath(root))) for root in roots]
    return dict(zip(as_given, real, strict=True)) | {parts: parts for parts in real}


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _folded(name: str) -> str:
    """Return the form that two names share when a file system without case takes them for one."""
    return unicodedata.normalize("NFC", name).casefold()


class _Walk:
    """One walk from a root to a spot; holds one handle at a time."""

    def __init__(self, confined: ConfinedPaths, path: str) -> None:
        self.confined = confined
        self.path = path
        self.root: tuple[str, ...] = ()
        self.below: list[str] = []
        self.pending: deque[str] = deque()
        self.handle = -1
        self.links = 0
        self.steps = 0

    def run(self) -> Spot:
        """Walk; the spot takes the handle over."""
        self._start(_parts(str(self.confined.base)) if not self._is_absolute() else [], _parts(self._text()))
        while self.pending:
            name = self.pending.popleft()
            self._count_step()
            if name == "..":
                self._up()
                continue
            status = self._status(name)
            if status is None:
                return self._missing(name)
            if stat.S_ISLNK(status.st_mode):
                self._follow(name)
            elif self.pending:
                self._down(name)
            else:
                return self._spot([name], status)
        return self._spot([], os.fstat(self.handle))

    def close(self) -> None:
        """Close the handle, if one is open."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def _text(self) -> str:
        text = self.path
        if not text:
            raise InvalidPathError(text, "the path is empty; give one")
        if "\0" in text:
            raise InvalidPathError(text, "a path cannot hold NUL; take it out")
        if len(text) > _MAX_PATH_CHARACTERS:
            raise InvalidPathError(text, f"a path has at most {_MAX_PATH_CHARACTERS} characters, this has {len(text)}")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidPathError(text, "a path cannot hold half a surrogate pair; take it out")
        if not text.startswith("~"):
            return text
        if text != "~" and not text.startswith("~/"):
            raise InvalidPathError(text, "'~user' is not read; write the whole path, or './~…' for a file of this name")
        return os.path.expanduser("~") + text[1:]

    def _is_absolute(self) -> bool:
        return self.path.startswith(("/", "~"))

    def _start(self, start: Sequence[str], parts: Sequence[str]) -> None:
        """Begin again at the root that the absolute parts lead into."""
        root, rest = self.confined.enter(self.path, [*start, *parts])
        self.root, self.below = root, []
        self.pending = deque(rest)
        self._reopen()

    def _reopen(self) -> None:
        """Open the directory reached so far, from the top; none of its parts may be a link."""
        self.close()
        self.handle = os.open("/", _PASS)
        for part in (*self.root, *self.below):
            self._descend(part)

    def _descend(self, name: str) -> None:
        inner = os.open(name, _PASS, dir_fd=self.handle)
        self.close()
        self.handle = inner

    def _down(self, name: str) -> None:
        self._descend(name)
        self.below.append(name)

    def _up(self) -> None:
        if self.below:
            self.below.pop()
            self._reopen()
        else:
            self._start(self.root[:-1], tuple(self.pending))

    def _follow(self, name: str) -> None:
        self.links += 1
        if self.links > _MAX_LINKS:
            raise SymlinkLoopError(self.path)
        target = os.readlink(name, dir_fd=self.handle)
        rest = [*_parts(target), *self.pending]
        if target.startswith("/"):
            self._start((), rest)
        else:
            self.pending = deque(rest)

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _count_step(self) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise InvalidPathError(self.path, f"it takes more than {_MAX_STEPS} steps; give a shorter way to the file")

    def _missing(self, name: str) -> Spot:
        missing = [name, *self.pending]
        if ".." in missing:
            raise PathMissingError(self.path)
        return self._spot(missing, None)

    def _spot(self, names: Sequence[str], status: os.stat_result | None) -> Spot:
        below = [*self.below, *names]
        self.confined.check_denied(self.path, self.root, below)
        return Spot(
            given=self.path,
            path=Path("/", *self.root, *below),
            directory=self.handle,
            name=names[-1] if names else ".",
            status=status,
            parents=tuple(names[:-1]),
        )
