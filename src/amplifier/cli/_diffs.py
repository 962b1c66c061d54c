"""Unified diffs with colours, where a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

import click

from amplifier_kit.terminal import wrapped
from amplifier_sdk.results import ToolResult

__all__ = ["DIFF", "coloured_diff", "diff_of", "wrapped_beside"]

DIFF: Final = "diff"
"""The part of a tool's result with the diff of what it changed."""

_HUNK: Final = "@@ "
_HEADS: Final = ("--- ", "+++ ")
_COLOURS: Final = {"-": "red", "+": "green", " ": ""}
_INDENT: Final = " " * 6
"""Deeper than the options of a question: a text that a model chose must not look like one."""


class _Style(TypedDict, total=False):
    fg: str
    bold: bool


def diff_of(result: ToolResult) -> str:
    """Return the diff that a result brings; empty where it has none."""
    if result.success and isinstance(result.output, Mapping):
        diff = result.output.get(DIFF)
        if isinstance(diff, str):
            return diff
    return ""


def coloured_diff(text: str) -> str:
    """Colour the lines of the diffs in a text that shows no control characters; what surrounds them stays.

    Args:
        text: a diff, or a question with one in it.
    """
    return "\n".join(
        line if style is None else click.style(line, **style)
        for line, style in _styled(text.split("\n"))
    )


def wrapped_beside(text: str, width: int) -> str:
    """Break long lines of a text between words; those of diffs in it stay, since each is a line of a file."""
    return "\n".join(
        line if style is not None else wrapped(line, width, _INDENT)
        for line, style in _styled(text.split("\n"))
    )


def _styled(lines: list[str]) -> Iterator[tuple[str, _Style | None]]:
    """Yield each line with its style; `None` where it is no part of a diff."""
    is_inside = False
    for line in lines:
        if line.startswith(_HUNK):
            is_inside = True
            yield line, _Style(fg="cyan")
        elif line.startswith(_HEADS):
            yield line, _Style(bold=True)
        # The first line of another kind ends a hunk: a list in a question is no change.
        elif is_inside and line[:1] in _COLOURS and line:
            colour = _COLOURS[line[0]]
            yield line, _Style(fg=colour) if colour else _Style()
        else:
            is_inside = False
            yield line, None
