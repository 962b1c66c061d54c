"""Texts that may write without end: a loop that nothing ends, a file that is read while it grows, a vast range."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amplifier_kit.shell.scripts import Script, Word
from amplifier_kit.shell.words import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["growth_of", "loops_without_end"]

_ENDING: Final = re.compile(r"\s*(?:IFS=\S*\s+)?read\b|.*\$", re.DOTALL)
"""Conditions that come to an end, as far as that can be seen: those that read, and those that look at a variable."""

_VAST: Final = re.compile(r"\d{6}|<<|\*")
"""What makes a loop that counts one of more rounds than a disk has room for."""

_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_BRACES: Final = re.compile(r"\{([^{}\s]*)\}")
_RANGE: Final = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.-?\d+)?")
_MAX_WORDS: Final = 100_000
"""So many words braces may make of one; more fill the memory before anything runs."""

_WRITERS: Final = frozenset(
    {
        "cp",
        "git",
        "gzip",
        "mkdir",
        "mktemp",
        "mv",
        "sed",
        "tar",
        "tee",
        "touch",
        "truncate",
        "zip",
    }
)


def loops_without_end(node: Node) -> bool:
    """Whether a node is a loop whose condition may hold for ever."""
    if node.type == "c_style_for_statement":
        head = text_of(node).partition("))")[0]
        return (
            re.match(r"for\s*\(\([^;]*;\s*;", head) is not None
            or _VAST.search(head) is not None
        )
    if node.type != "while_statement":
        return False
    conditions = node.children_by_field_name("condition")
    text = "".join(map(text_of, conditions[:1]))
    # a condition without a variable never changes; a large bound is as good as
    # none
    return _ENDING.match(text) is None or re.search(r"\d{6}", text) is not None


def growth_of(script: Script) -> str:
    """Return why a text may fill the disk; nothing where it writes a bounded amount, as far as that can be seen."""
    if any(_words_of(word.raw) > _MAX_WORDS for word in _words(script)):
        return "its braces stand for more words than memory holds"
    written = frozenset(_written(script))
    if script.is_endless and written:
        return "it writes in a loop that nothing ends"
    read = {
        redirect.target.static for redirect in script.redirects if not redirect.writes
    }
    # `cat < f >> f` reads what it appends
    if read & (written - {None}):
        return "it reads a file that it writes"
    return ""


def _words(script: Script) -> Iterator[Word]:
    """Yield every word of a text that braces may make several of."""
    for command in script.commands:
        yield from command.words
    # those of a loop are among them
    yield from (assignment.value for assignment in script.assignments)


def _words_of(text: str) -> int:
    """Return how many words braces make of one at the most."""
    count = 1
    for found in _BRACES.finditer(_QUOTED.sub("", text)):
        limits = _RANGE.fullmatch(found[1])
        count *= (
            found[1].count(",") + 1
            if limits is None
            # 19 digits are far past the limit, and `int` takes quadratic time on
            # more
            else abs(int(limits[2][:19]) - int(limits[1][:19])) + 1
        )
    return count


def _written(script: Script) -> Iterator[str | None]:
    """Yield what a text writes to: files, and programs that write."""
    for redirect in script.redirects:
        target = redirect.target.static
        if (
            redirect.writes
            and not redirect.is_of_handle
            and not (target or "").startswith("/dev/")
        ):
            yield target
    for command in script.commands:
        if command.program in _WRITERS:
            yield command.program
        if command.program == "tee":
            yield from (word.static for word in command.words[1:])
