"""Paths that stay inside some directories, whatever links and races do.

Checking a path and opening it by name afterwards are two walks, and a directory swapped for a link between
them leads the second one astray. Here there is one walk: every directory is opened relative to the handle
of the one above it, without following links (see `beneath`), and what was reached is used through that handle.
A link is read and its target walked in the same way, so that a link to a place inside works and one to a place
outside is refused.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.executed import BARE_REPOSITORY, is_in_repository
from amplifier_kit.files.open_flags import PASS
from amplifier_kit.files.openat2 import open_beneath
from amplifier_kit.files.path_errors import (
    MAX_LINKS,
    InvalidPathError,
    PathDeniedError,
    PathMissingError,
    PathOutsideError,
    Purpose,
    SymlinkLoopError,
    UnsupportedPlatformError,
    path_refusals,
)
from amplifier_kit.files.path_rules import PathRules, path_parts
from amplifier_kit.files.product import ProductFiles
from amplifier_kit.files.resolved import ResolvedPath

__all__ = ["ConfinedPaths"]

_MAX_PATH_CHARACTERS: Final = 4096
_MAX_STEPS: Final = 4096


class ConfinedPaths:
    """The part of the file system under some root directories.

    Args:
        roots: absolute paths of directories; links in them are resolved once, here.
        base: the absolute directory that relative paths start from.
        purpose: what the paths are for; errors say it.
        denied_names: no path may have one of these names below its root; see `PathRules`.
        denied_paths: absolute paths; neither they nor what is below them may be used.
        product: the product's own files, which may not be used either.

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
        product: ProductFiles | None = None,
    ) -> None:
        if os.open not in os.supports_dir_fd:
            raise UnsupportedPlatformError
        self.purpose: Final = purpose
        self.base: Final = base
        # resolved once: a root that becomes a link later leads nowhere new
        self.roots: Final = tuple(Path(os.path.realpath(root)) for root in roots)
        self._aliases = _aliases(roots)
        own = product or ProductFiles()
        self.rules: Final = PathRules(denied_names, denied_paths, own.refuses(purpose))

    @contextmanager
    def locate(self, path: str, *, follow: bool = True) -> Iterator[ResolvedPath]:
        """Walk to a path and yield what it leads to; its handle is open while the block runs.

        Relative paths start at the base, `~` is the home directory. Nothing need be at the path.

        Args:
            path: as a model gives it.
            follow: whether a link at the end of the path is followed; else what it leads to is the link itself.

        Raises:
            PathError: the path is invalid, leads outside, is protected, or the walk was refused.
        """
        walk = _Walk(self, path, follow=follow)
        try:
            with path_refusals(path):
                resolved = walk.run()
        except BaseException:
            walk.close()
            raise
        try:
            yield resolved
        finally:
            os.close(resolved.directory)

    def enter(
        self, path: str, parts: Sequence[str]
    ) -> tuple[tuple[str, ...], list[str]]:
        """Find the root that absolute parts lead into, and return its real parts and the rest.

        Raises:
            PathOutsideError: they lead into none.
        """
        reached: list[str] = []
        for index, part in enumerate(("", *parts)):
            # taken off the text only above the root; inside it the walk goes up
            # by handles
            if part == "..":
                del reached[-1:]
            elif part not in ("", "."):
                reached.append(part)
            # the first root on the way, so that what is below it is walked and
            # not trusted
            root = self._aliases.get(tuple(reached))
            if root is not None:
                return root, list(parts[index:])
        raise PathOutsideError(path, [str(root) for root in self.roots], self.purpose)

    def check_denied(
        self, path: str, root: Sequence[str], below: Sequence[str]
    ) -> None:
        """Refuse a protected path; `root` and `below` are its real parts.

        Raises:
            PathDeniedError: names the rule.
        """
        rule = self.rules.rule(root, below)
        # git would run what a `config` names that is written here
        if rule is None and self.purpose == "write" and is_in_repository(root, below):
            rule = BARE_REPOSITORY
        if rule is not None:
            raise PathDeniedError(path, rule, self.purpose)

    def check(self, path: str, real: Path) -> None:
        """Refuse a path without a link in it that is not inside, or protected.

        Args:
            path: as it was given, for messages.
            real: where it leads.

        Raises:
            PathOutsideError: it is in no root.
            PathDeniedError: names the rule.
        """
        parts = path_parts(str(real))
        root, below = self.enter(path, parts)
        self.check_denied(path, root, below)


def _aliases(roots: Sequence[Path]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Map the ways to write each root, with links and without, to its real parts."""
    real = [tuple(path_parts(os.path.realpath(root))) for root in roots]
    as_given = [tuple(path_parts(os.path.normpath(root))) for root in roots]
    return dict(zip(as_given, real, strict=True)) | {parts: parts for parts in real}


@attrs.define(eq=False)
class _Walk:
    """One walk from a root to a path; holds one handle at a time."""

    confined: ConfinedPaths
    path: str
    follow: bool
    root: tuple[str, ...] = ()
    below: list[str] = attrs.field(factory=list)
    pending: deque[str] = attrs.field(factory=deque)
    handle: int = -1
    links: int = 0
    steps: int = 0

    def run(self) -> ResolvedPath:
        """Walk; what it leads to takes the handle over."""
        self._start(
            []
            if self.path.startswith(("/", "~"))
            else path_parts(str(self.confined.base)),
            path_parts(self._text()),
        )
        self._leap()
        while self.pending:
            name = self.pending.popleft()
            self.steps += 1
            if self.steps > _MAX_STEPS:
                raise InvalidPathError(
                    self.path,
                    f"it takes more than {_MAX_STEPS} steps; give a shorter way to the file",
                )
            if name == "..":
                self._up()
                continue
            status = self._status(name)
            if status is None:
                return self._missing(name)
            # a link in the middle is always followed: only the last one may be
            # meant itself
            if stat.S_ISLNK(status.st_mode) and (self.follow or self.pending):
                self._follow(name)
            elif self.pending:
                self._down(name)
            else:
                return self._resolved([name], status)
        return self._resolved([], os.fstat(self.handle))

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
            raise InvalidPathError(
                text,
                f"a path has at most {_MAX_PATH_CHARACTERS} characters, this has {len(text)}",
            )
        # such text stands for bytes of no UTF-8, and could name a file that a
        # message cannot show
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidPathError(
                text, "a path cannot hold half a surrogate pair; take it out"
            )
        if not text.startswith("~"):
            return text
        if text != "~" and not text.startswith("~/"):
            raise InvalidPathError(
                text,
                "'~user' is not read; write the whole path, or './~…' for a file of this name",
            )
        return os.path.expanduser("~") + text[1:]

    def _start(self, start: Sequence[str], parts: Sequence[str]) -> None:
        """Begin again at the root that the absolute parts lead into."""
        root, rest = self.confined.enter(self.path, [*start, *parts])
        self.root, self.below = root, []
        self.pending = deque(rest)
        self._reopen()

    def _reopen(self) -> None:
        """Open the directory reached so far, from the top; none of its parts may be a link."""
        self.close()
        # From the top each time: a handle says nothing of where its folder is by
        # now, so going up through it could leave the root.
        self.handle = os.open("/", PASS)
        self._descend((*self.root, *self.below))

    def _descend(self, names: Sequence[str]) -> None:
        inner = open_beneath(self.handle, names)
        self.close()
        self.handle = inner

    def _down(self, *names: str) -> None:
        self._descend(names)
        self.below.extend(names)

    def _leap(self) -> None:
        """Go down all the way at once where no link and nothing missing is on it; else stay."""
        # the last name is left to the steps: it may be missing, or a link that is
        # meant
        names = [*self.pending][:-1]
        if not names or ".." in names:
            return
        with suppress(OSError):  # the steps find out what it is, and may pass a link
            self._down(*names)
            self.pending = deque([self.pending[-1]])

    def _up(self) -> None:
        # `..` at a root leads out, and is taken anew from the top: another root
        # may hold it
        if self.below:
            self.below.pop()
            self._reopen()
        else:
            self._start(self.root[:-1], tuple(self.pending))

    def _follow(self, name: str) -> None:
        self.links += 1
        if self.links > MAX_LINKS:
            raise SymlinkLoopError(self.path)
        target = os.readlink(name, dir_fd=self.handle)
        rest = [*path_parts(target), *self.pending]
        # an absolute target is walked from its root, so it cannot leave what is
        # confined
        if target.startswith("/"):
            self._start((), rest)
        else:
            self.pending = deque(rest)

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _missing(self, name: str) -> ResolvedPath:
        missing = [name, *self.pending]
        # `missing/..` is not the folder itself: the system would refuse it, too
        if ".." in missing:
            raise PathMissingError(self.path)
        return self._resolved(missing, None)

    def _resolved(
        self, names: Sequence[str], status: os.stat_result | None
    ) -> ResolvedPath:
        below = [*self.below, *names]
        # last, on the real parts: a protected name cannot hide behind a link
        self.confined.check_denied(self.path, self.root, below)
        return ResolvedPath(
            given=self.path,
            path=Path("/", *self.root, *below),
            directory=self.handle,
            name=names[-1] if names else ".",
            status=status,
            parents=tuple(names[:-1]),
        )
