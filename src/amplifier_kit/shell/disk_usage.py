"""Texts that may write without end: a loop that nothing ends, and a file that is read while it grows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amplifier_kit.shell.scripts import Script
from amplifier_kit.shell.words import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["growth_of", "loops_without_end"]

_ENDING: Final = re.compile(r"\s*(?:IFS=\S*\s+)?read\b|.*\$", re.DOTALL)
"""Conditions that come to an end, as far as that can be seen: those that read, and those that look at a variable."""

_WRITERS: Final = frozenset(
    {"cp", "git", "gzip", "mkdir", "mktemp", "mv", "sed", "tar", "tee", "touch", "truncate", "zip"}
)


def loops_without_end(node: Node) -> bool:
    """Whether a node is a loop whose condition may hold for ever."""
    if node.type == "c_style_for_statement":
        return re.match(r"for\s*\(\([^;]*;\s*;", text_of(node)) is not None
    if node.type != "while_statement":
        return False
    condition = node.child_by_field_name("condition")
    return condition is None or _ENDING.match(text_of(condition)) is None


def growth_of(script: Script) -> str:
    """Return why a text may fill the disk; nothing where it writes a bounded amount, as far as that can be seen."""
    written = frozenset(_written(script))
    if script.is_endless and written:
        return "it writes in a loop that nothing ends"
    read = {redirect.target.static for redirect in script.redirects if not redirect.writes}
    return "it reads a file that it writes" if read & (written - {None}) else ""


def _written(script: Script) -> Iterator[str | None]:
    """Yield what a text writes to: files, and programs that write."""
    for redirect in script.redirects:
        target = redirect.target.static
        if redirect.writes and redirect.operator != ">&" and not (target or "").startswith("/dev/"):
            yield target
    for command in script.commands:
        name = command.words[0].static if command.words else None
        if name in _WRITERS:
            yield name
        if name == "tee":
            yield from (word.static for word in command.words[1:])
