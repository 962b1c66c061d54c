"""Glob patterns over path parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from itertools import islice
from typing import Final

from amplifier_sdk.errors import ToolError

__all__ = ["GlobPattern"]

_MAX_LENGTH: Final = 1000
_MAX_ALTERNATIVES: Final = 64

_DEEP: Final = "**"
_INNERMOST_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")


class GlobPattern:
    """A pattern such as `src/**/*.py`, matched against the parts of a path.

    `*`, `?` and `[…]` match within a name, `**` any number of directories, `{a,b}` either of two. As in a
    shell, hidden names are matched only by a part of the pattern that begins with a dot itself.

    Args:
        pattern: relative, with `/` between its parts.

    Raises:
        ToolError: the pattern is empty, absolute, goes upwards or is too long.
    """

    def __init__(self, pattern: str) -> None:
        if not pattern.strip("/"):
            raise ToolError("the pattern is empty; give one such as '**/*.py'")
        if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
            raise ToolError(
                f"{pattern!r:.200}: a pattern is relative and cannot go upwards; give the directory as path"
            )
        if len(pattern) > _MAX_LENGTH:
            raise ToolError(
                f"a pattern has at most {_MAX_LENGTH} characters; this has {len(pattern)}"
            )
        # Lazily: braces in braces multiply, and the bound must come before the memory.
        alternatives = list(islice(_expand(pattern), _MAX_ALTERNATIVES + 1))
        if len(alternatives) > _MAX_ALTERNATIVES:
            raise ToolError(
                f"{pattern!r:.200}: more than {_MAX_ALTERNATIVES} alternatives in braces; use fewer"
            )
        self._alternatives = [_Alternative(alternative) for alternative in alternatives]

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether the whole path matches."""
        return any(
            alternative.is_at_end(alternative.after(parts))
            for alternative in self._alternatives
        )

    def may_match_below(self, parts: Sequence[str]) -> bool:
        """Whether something below this directory could match."""
        return any(
            alternative.after(parts) - {alternative.end}
            for alternative in self._alternatives
        )


class _Alternative:
    """One pattern without braces: a small automaton whose states are indices of its parts."""

    def __init__(self, pattern: str) -> None:
        self._parts = [
            _DEEP if part == _DEEP else _Name(part)
            for part in pattern.split("/")
            if part not in ("", ".")
        ]
        self.end = len(self._parts)
        # A walk asks about one directory's entries after another's: only the last step is new each time.
        self._known: dict[tuple[str, ...], set[int]] = {(): self._spread({0})}

    def after(self, parts: Sequence[str]) -> set[int]:
        """Return the states that the path's parts lead to."""
        if parts:
            return self._next(self._after_directory(tuple(parts[:-1])), parts[-1])
        return self._known[()]

    def _after_directory(self, parts: tuple[str, ...]) -> set[int]:
        known = self._known.get(parts)
        if known is None:
            known = self._known[parts] = self._next(
                self._after_directory(parts[:-1]), parts[-1]
            )
        return known

    def _next(self, states: set[int], part: str) -> set[int]:
        return self._spread(
            {after for state in states for after in self._step(state, part)}
        )

    def is_at_end(self, states: set[int]) -> bool:
        """Whether one of the states is the last."""
        return self.end in states

    def _step(self, state: int, part: str) -> Iterator[int]:
        if state == self.end:
            return
        wanted = self._parts[state]
        if isinstance(wanted, _Name):
            if wanted.matches(part):
                yield state + 1
        elif not part.startswith("."):
            yield state

    def _spread(self, states: set[int]) -> set[int]:
        """Add the states behind each `**`, which may stand for nothing."""
        found = set(states)
        for state in sorted(states):
            following = state
            while following < self.end and self._parts[following] == _DEEP:
                following += 1
                found.add(following)
        return found


class _Name:
    """One part of a pattern."""

    def __init__(self, pattern: str) -> None:
        self._hidden = pattern.startswith(".")
        self._regex = re.compile(translate(pattern))

    def matches(self, name: str) -> bool:
        return (self._hidden or not name.startswith(".")) and self._regex.match(
            name
        ) is not None


def _expand(pattern: str) -> Iterator[str]:
    """Yield the pattern with each of its alternatives in braces; braces without a comma stand for themselves."""
    found = _INNERMOST_BRACES.search(pattern)
    if found is None:
        yield pattern
        return
    for alternative in found[1].split(","):
        yield from _expand(
            pattern[: found.start()] + alternative + pattern[found.end() :]
        )
