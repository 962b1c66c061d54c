"""What a call of a known program does to files, by the kinds of the places of its words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.scripts import Word
from amplifier_kit.shell.table import CallWord

__all__ = ["Change", "change_of", "written_over"]

Change: TypeAlias = Literal["none", "possible", "formatted", "replaced"]
"""What becomes of what a file holds.

A program that nobody knows may change what it is given by name (`possible`), a formatter
rewrites what it finds in a folder (`formatted`), and what is written over or removed is
`replaced`.
"""

_CHANGES: Final[dict[str, Change]] = {
    "ARCHIVE": "replaced",
    "EDIT": "replaced",
    "FORMATTED": "formatted",
    "MOVED": "possible",
    "SCRAP": "replaced",
    "WRITE": "replaced",
}
_WRITTEN: Final = frozenset({"ARCHIVE", "EDIT", "WRITE"})
_DESTINATIONS: Final = frozenset({"INTO", "KEPT"})
_PLACED: Final = frozenset({"COPIED", "LINKED", "MOVED", "READ"})
"""Kinds of what goes to a destination: into it where it is a folder, else in its place."""


def change_of(kind: str) -> Change:
    """Return what a call does to a file whose word stands in a place of a kind."""
    return _CHANGES.get(kind, "none")


def written_over(
    arguments: Sequence[CallWord], path_policy: PathPolicy
) -> Iterator[CallWord]:
    """Yield the words that name what a call writes over, there or not.

    Args:
        arguments: those of one call.
        path_policy: decides which destinations are folders.
    """
    placed = [argument for argument in arguments if argument.kind in _PLACED]
    for argument in arguments:
        if argument.kind in _WRITTEN:
            yield argument
        elif argument.kind in _DESTINATIONS:
            values = tuple(_reached(argument, placed, path_policy))
            word = Word(raw=argument.word.raw, values=values)
            yield attrs.evolve(argument, word=word)


def _reached(
    target: CallWord, placed: Sequence[CallWord], path_policy: PathPolicy
) -> Iterator[str]:
    """Yield what is at a destination once something is placed there."""
    policy = attrs.evolve(path_policy, directory=target.directory)
    for value in target.word.values:
        real = policy.real(value)
        # what is no folder is itself written over; a folder takes things in by
        # their names
        if real is not None and not os.path.isdir(real):
            yield value
            continue
        for source in placed:
            for name in map(_name, source.word.values):
                yield f"{value.rstrip('/')}/{name}" if name else value


def _name(path: str) -> str:
    """Return what a path is called where it arrives; nothing where its content does."""
    name = path.rstrip("/").rpartition("/")[2]
    return "" if name in (".", "..") else name
