"""What `.gitignore` and `.ignore` files leave out of a search, as git reads them.

The files come with the project, which nobody has to trust: patterns are matched in linear time, whatever they are.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import attrs

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import READ
from amplifier_kit.files.openat2 import open_beneath
from amplifier_kit.files.wildcards import name_regex

__all__ = ["IGNORE_FILES", "IgnoreRules", "Rules"]

IGNORE_FILES: Final = (".gitignore", ".ignore")
"""The files that are read in each directory; what the later one says counts more."""

_MAX_BYTES: Final = 256 * 1024
_MAX_RULES: Final = 2000
_MAX_PATTERN_LENGTH: Final = 1000
_DEEP: Final = None

_DEEP_AGAIN: Final = re.compile(r"(?<![^/])(?:\*{2,}/){2,}")

_Parts = tuple[str, ...]


@attrs.define(eq=False)
class IgnoreRules:
    """The rules of a tree, read directory by directory as a walk comes by.

    Args:
        prefix: the path from the top of the tree, whose rules hold as well, to where the walk begins.
    """

    prefix: _Parts = ()
    count: int = attrs.field(default=0, init=False)
    """How many entries were left out."""
    _rules: dict[_Parts, Rules] = attrs.field(factory=dict, init=False)

    def load(
        self, handle: int, parts: Sequence[str], names: Collection[str] = IGNORE_FILES
    ) -> None:
        """Read the ignore files of a directory; one that cannot be read says nothing.

        Args:
            handle: the open directory.
            parts: its path from where the walk begins.
            names: what is in it, where that is known.
        """
        content = b"\n".join(
            _read(name, handle) for name in IGNORE_FILES if name in names
        )
        if content:
            self._rules[(*self.prefix, *parts)] = Rules(content)

    def ignores(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        """Tell whether an entry is left out, when the directories above it are not."""
        if is_left_out := self._decide(
            (*self.prefix, *parts), is_directory=is_directory
        ):
            self.count += 1
        return is_left_out

    @classmethod
    def above(cls, top: int, prefix: Sequence[str]) -> IgnoreRules:
        """Read the ignore files from the top of a tree down to where a walk begins.

        Where they leave that place out itself they do not count: who names a place means it.

        Args:
            top: the open directory at the top.
            prefix: the path from there to where the walk begins, without links.
        """
        found = cls()
        handle = open_beneath(top, ())
        try:
            for depth, name in enumerate(prefix):
                found.load(handle, prefix[:depth])
                # A person who searches inside `build/` wants what is in it.
                if found._decide(tuple(prefix[: depth + 1]), is_directory=True):
                    return cls(tuple(prefix))
                inner = open_beneath(handle, (name,))
                os.close(handle)
                handle = inner
        finally:
            os.close(handle)
        found.prefix = tuple(prefix)
        return found

    def _decide(self, path: _Parts, *, is_directory: bool) -> bool:
        # The nearest directory's file decides, as in git.
        for depth in range(len(path) - 1, -1, -1):
            rules = self._rules.get(path[:depth])
            decision = None
            if rules is not None:
                decision = rules.decide(path[depth:], is_directory=is_directory)
            if decision is not None:
                return decision
        return False


class Rules:
    """The rules of one directory; of those that match the last one decides.

    Args:
        content: an ignore file, or several, one after the other.
    """

    def __init__(self, content: bytes) -> None:
        self._rules = list(_parse(content))
        self._names: dict[tuple[str, bool], int] = {}

    def decide(self, parts: Sequence[str], *, is_directory: bool) -> bool | None:
        """Return whether a path below the directory is left out; `None` where no rule speaks of it."""
        parts = [_as_bytes(part) for part in parts]
        index = self._by_name(parts[-1], is_directory)
        for later in range(len(self._rules) - 1, index, -1):
            rule = self._rules[later]
            if (
                rule.is_anchored
                and (is_directory or not rule.directories_only)
                and rule.matches(parts)
            ):
                index = later
                break
        if index < 0:
            return None
        return not self._rules[index].is_negated

    def _by_name(self, name: str, is_directory: bool) -> int:
        """Return the index of the last rule for bare names that matches; the same names come again and again."""
        key = (name, is_directory)
        if key not in self._names:
            self._names[key] = next(
                (
                    index
                    for index in range(len(self._rules) - 1, -1, -1)
                    if not self._rules[index].is_anchored
                    and (is_directory or not self._rules[index].directories_only)
                    and self._rules[index].matches((name,))
                ),
                -1,
            )
        return self._names[key]


@attrs.frozen(kw_only=True)
class _Rule:
    """One line: patterns for the parts of a path, `None` for `**`."""

    parts: tuple[re.Pattern[str] | None, ...]
    is_anchored: bool
    is_negated: bool
    directories_only: bool

    def matches(self, path: Sequence[str]) -> bool:
        states = self._spread({0})
        for name in path:
            if not states:
                return False
            after: set[int] = set()
            for state in states:
                if state == len(self.parts):
                    continue
                part = self.parts[state]
                if part is _DEEP:
                    after |= (
                        {state, state + 1} if state == len(self.parts) - 1 else {state}
                    )
                elif part.fullmatch(name):
                    after.add(state + 1)
            states = self._spread(after)
        return len(self.parts) in states

    def _spread(self, states: set[int]) -> set[int]:
        """Add what follows each `**`, which may stand for nothing; at the end it stands for something."""
        found = set(states)
        for state in sorted(states):
            following = state
            while following < len(self.parts) - 1 and self.parts[following] is _DEEP:
                following += 1
                found.add(following)
        return found


def _as_bytes(name: str) -> str:
    """Return a name with a character for each of its bytes: git compares bytes."""
    if name.isascii():
        return name
    return os.fsencode(name).decode("latin-1")


def _parse(content: bytes) -> Iterator[_Rule]:
    # Latin-1 gives each byte a character, so patterns and names are compared by bytes.
    lines = content.removeprefix(codecs.BOM_UTF8).decode("latin-1").split("\n")
    for line in lines[:_MAX_RULES]:
        rule = None
        if len(line) <= _MAX_PATTERN_LENGTH:
            rule = _rule(line)
        if rule is not None:
            yield rule


def _rule(line: str) -> _Rule | None:
    """Read one line; `None` for a comment, an empty line and a pattern that can match nothing."""
    pattern = _trimmed(line.removesuffix("\r"))
    if pattern.startswith("#"):
        return None
    is_negated = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    directories_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    is_anchored = "/" in pattern
    *above, last = _DEEP_AGAIN.sub("**/", pattern.removeprefix("/")).split("/")
    names = [*map(_unescaped_end, above), last]
    is_deep = [is_anchored and len(name) > 1 and not name.strip("*") for name in names]
    parts = [
        _DEEP if deep else name_regex(name)
        for name, deep in zip(names, is_deep, strict=True)
    ]
    if not all(names) or any(
        part is None and not deep for part, deep in zip(parts, is_deep, strict=True)
    ):
        return None
    return _Rule(
        parts=tuple(parts),
        is_anchored=is_anchored,
        is_negated=is_negated,
        directories_only=directories_only,
    )


def _unescaped_end(name: str) -> str:
    """Take away the backslash before a slash, which means nothing."""
    if (len(name) - len(name.rstrip("\\"))) % 2:
        return name[:-1]
    return name


def _trimmed(line: str) -> str:
    """Cut off the blanks at the end, but one behind a backslash."""
    trimmed = line.rstrip(" ")
    backslashes = len(trimmed) - len(trimmed.rstrip("\\"))
    if backslashes % 2 and len(trimmed) < len(line):
        return f"{trimmed} "
    return trimmed


def _read(name: str, directory: int) -> bytes:
    try:
        handle = os.open(name, READ, dir_fd=directory)
    except OSError:
        return b""
    with closing_handle(handle):
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        with open(handle, "rb", closefd=False) as file:
            return file.read(_MAX_BYTES)
