"""Results as people and programs read them: columns, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import click

from amplifier.cli._options import OptionGroup
from amplifier.cli._terminal import notice, say

__all__ = ["columns", "output_option", "say_json", "say_table"]

output_option: Final = OptionGroup(
    click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="For people, or one JSON value.",
    ),
    click.option(
        "--json", "output", flag_value="json", help="Short for --output json."
    ),
)
"""Adds `--output text|json`, and `--json`, which is short for the latter."""


def say_json(value: object) -> None:
    """Write JSON data to standard output.

    Raises:
        OutputClosedError: nobody reads any more.
    """
    say(json.dumps(value, indent=2))


def say_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str | None = None
) -> None:
    """Write rows under their heads to standard output; where there are none, `empty` as a notice if it is given.

    Raises:
        OutputClosedError: nobody reads any more.
    """
    lines = [head, *rows]
    if empty is not None and len(lines) == 1:
        notice(empty)
        return
    for line in columns(lines):
        say(line)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return rows of equal length as lines, each column as wide as its widest cell but for the last."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)
        ]
        # The last column is not padded: it is the longest, and would wrap on a narrow
        # terminal.
        yield "  ".join([*cells, row[-1]]).rstrip()
