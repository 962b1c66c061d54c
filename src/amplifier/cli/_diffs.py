"""Unified diffs with colours, where a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

__all__ = ["coloured_diff"]

_HUNK: Final = "@@ "
_HEADS: Final = ("--- ", "+++ ")
_COLOURS: Final = {"-": "red", "+": "green", " ": ""}


def coloured_diff(text: str) -> str:
    """Colour the lines of the diffs in a text that shows no control characters; what surrounds them stays.

    Args:
        text: a diff, or a question with one in it.
    """
    return "\n".join(_coloured(text.split("\n")))


def _coloured(lines: list[str]) -> Iterator[str]:
    is_inside = False
    for line in lines:
        if line.startswith(_HUNK):
            is_inside = True
            yield click.style(line, fg="cyan")
        elif line.startswith(_HEADS):
            yield click.style(line, bold=True)
        # The first line of another kind ends a hunk: a list in a question is no change.
        elif is_inside and line[:1] in _COLOURS and line:
            yield click.style(line, fg=_COLOURS[line[0]] or None)
        else:
            is_inside = False
            yield line
