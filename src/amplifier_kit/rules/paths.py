"""Patterns of paths, anchored at both ends and compared with where a path really leads."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.rules.truth import Truth
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["PathPattern"]

_MAX_CHARACTERS: Final = 4096
_WILD: Final = frozenset("*?")


@attrs.frozen
class PathPattern:
    """A pattern such as `src/**`: `*` and `?` stand for characters of one name, `**` for any folders.

    A relative pattern starts at the call's folder, `~/` is the home folder. `dir/**` is also `dir` itself.
    """

    text: str

    @classmethod
    def read(cls, text: str) -> PathPattern:
        """Read a pattern as it stands in a configuration.

        Raises:
            ValueError: it can fit no path.
        """
        if not text or "\0" in text:
            raise ValueError("a pattern of paths is not empty and holds no NUL")
        # `a**b` means folders to some and characters to others: it is refused
        if any("**" in part and part != "**" for part in text.split("/")):
            raise ValueError(
                f"{text!r} has '**' beside other characters; write it as a folder: src/**/*.py"
            )
        if ".." in text.split("/"):
            raise ValueError(f"{text!r} goes up; write the path that is meant")
        return cls(text)

    def allows(self, value: JSONValue, directory: Path) -> Truth:
        """Tell whether a path certainly leads to what the pattern means."""
        readings = list(_readings(value, directory))
        if not readings:
            return Truth.MAYBE
        start, rest = _parts(self.text, directory)
        expression = _compiled(os.path.realpath(start), rest, folded=False)
        return Truth.of(
            # what is allowed is where the path leads: a link in an allowed folder
            # may lead out
            all(expression.fullmatch(os.path.realpath(reading)) for reading in readings)
        )

    def catches(self, value: JSONValue, directory: Path, *, deep: bool) -> Truth:
        """Tell whether a path may lead to what the pattern means, as it is written or as it leads, in any case.

        Args:
            value: the path.
            directory: where relative paths start.
            deep: whether what is done to a folder is done to all below it.
        """
        readings = list(_readings(value, directory))
        if not readings:
            return Truth.MAYBE
        # as written and as it leads: a rule that refuses must not be avoided by a
        # link
        places = [
            place
            for path in readings
            for place in (os.path.normpath(path), os.path.realpath(path))
        ]
        written, rest = _parts(self.text, directory)
        # links may change while a session lives: what the pattern's own folders
        # lead to is found anew
        real = os.path.realpath(written)
        expressions = [_compiled(each, rest, folded=True) for each in (real, written)]
        if any(
            expression.fullmatch(_folded(place))
            for place in places
            for expression in expressions
        ):
            return Truth.YES
        start = _folded(real)
        above = any(
            start == _folded(place)
            or start.startswith(_folded(place).rstrip("/") + "/")
            for place in places
        )
        if deep and (above or _reaches_below(places, start.rstrip("/") + "/", rest)):
            return Truth.MAYBE
        return Truth.NO


def _reaches_below(places: Sequence[str], start: str, rest: Sequence[str]) -> bool:
    """Whether something in one of some folders may fit a pattern, such as `src/.env` of `**/.env` in `src`."""
    for place in places:
        if _folded(place).startswith(start) and os.path.isdir(place):
            names = _folded(place)[len(start) :].split("/")
            if _fits_beginning(rest, names):
                return True
    return False


def _readings(value: JSONValue, directory: Path) -> Iterator[str]:
    """Yield the absolute paths that a tool may read out of a text; none where that cannot be said."""
    if (
        not isinstance(value, str)
        or not value
        or "\0" in value
        or len(value) > _MAX_CHARACTERS
    ):
        return
    if value.startswith("~"):
        # whether a tool expands `~user` is not known, so nothing is said of it
        if value[1:2] not in ("", "/"):
            return  # somebody's home folder
        yield os.path.expanduser(value)
        if not os.path.lexists(os.path.join(directory, "~")):
            # nothing is there that a tool which knows no home folder could reach
            return
    yield os.path.join(directory, value)


def _fits_beginning(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a path that begins with these names may fit a pattern that begins where they do."""
    for index, part in enumerate(pattern):
        if part == "**" or index == len(names):
            return True
        if not _compiled("", (part,), folded=True).fullmatch(f"/{names[index]}"):
            return False
    return False


def _folded(text: str) -> str:
    """Bring a path into the form in which file systems that ignore case and composition compare names."""
    # folding case can take a composed character apart, so it is composed again
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _parts(pattern: str, directory: Path) -> tuple[str, tuple[str, ...]]:
    """Split a pattern into the folder before its first wildcard and the rest."""
    if pattern.startswith("~/"):
        pattern = os.path.expanduser(pattern)
    whole = os.path.join(directory, pattern).split("/")
    parts = [part for part in whole if part not in ("", ".")]
    count = next(
        (index for index, part in enumerate(parts) if _WILD & set(part)), len(parts)
    )
    return "/" + "/".join(parts[:count]), tuple(parts[count:])


@lru_cache(maxsize=1024)
def _compiled(start: str, rest: tuple[str, ...], *, folded: bool) -> re.Pattern[str]:
    form = _folded if folded else str
    pieces = [re.escape(form(start.rstrip("/")))]
    for index, part in enumerate(rest):
        if part != "**":
            pieces.append(
                "/"
                + "".join(
                    {"*": "[^/]*", "?": "[^/]"}.get(c, re.escape(c)) for c in form(part)
                )
            )
        elif index == len(rest) - 1:
            pieces.append("(?:/.*)?")
        else:
            pieces.append("(?:/[^/]+)*")
    text = "".join(pieces)
    return re.compile(text or "/", re.DOTALL)
