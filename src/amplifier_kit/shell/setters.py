"""Commands of the shell itself that set variables or leave the folder in ways that are not followed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from amplifier_kit.shell.scripts import HOLE, SimpleCommand, Word

__all__ = ["DECLARING", "SETTERS", "builtin_words", "is_call_of", "names_set_by"]

DECLARING: Final = frozenset({"declare", "export", "local", "readonly", "typeset"})
SETTERS: Final = frozenset(
    {"getopts", "let", "mapfile", "printf", "read", "readarray", "unset", *DECLARING}
)
"""Commands whose arguments name variables."""

_RUN_TEXTS: Final = frozenset({"eval", "source", "."})
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def builtin_words(command: SimpleCommand) -> Sequence[Word]:
    """Return the words of a command without `command`, `builtin` and `time`, behind which the shell runs its own."""
    words = command.words
    while words and words[0].static in ("builtin", "command", "time"):
        words = words[1:]
        while words and (words[0].static or "").startswith("-"):
            words = words[1:]
    return words


def is_call_of(command: SimpleCommand, name: str) -> bool:
    """Whether a command certainly calls the shell's own command of a name."""
    words = builtin_words(command)
    return bool(words) and words[0].static == name


def names_set_by(command: SimpleCommand) -> frozenset[str] | None:
    """Return the variables that a command may set besides its assignments; `None` where it may be any."""
    words = builtin_words(command)
    name = None
    if words:
        name = words[0].static
    if name in _RUN_TEXTS:
        return None
    if name not in SETTERS:
        return frozenset()
    found: set[str] = set()
    for word in words[1:]:
        for value in word.values:
            named = value.partition("=")[0]
            # what it is called is known only when it runs; `printf` mostly prints
            # such words, and what it sets stands behind `-v`
            if HOLE in named and name != "printf":
                return None
            # A name may stand behind the letters of options, as in `-vNAME`.
            starts = range(1, len(named)) if named.startswith("-") else (0,)
            found.update(
                match[0] for start in starts if (match := _NAME.match(named, start))
            )
    if (
        name == "printf"
        and len(words) > 1
        and any(value.startswith(HOLE) for value in words[1].values)
    ):
        return None
    return frozenset(found)
