"""Text on its way to a terminal: what models and tools write is shown and never obeyed."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Final

import click

__all__ = ["MessageLines", "OutputClosedError", "complain", "notice", "one_line", "say", "visible"]

# C0 but tab and line feed, DEL and C1, marks that turn the direction of what follows, halves of surrogate pairs.
_OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class OutputClosedError(Exception):
    """Whoever read standard output is gone."""


def visible(text: str) -> str:
    r"""Write control characters as their escapes, such as `\x1b`; tabs and line ends stay."""
    return _OBEYED.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def one_line(text: str, width: int = 200) -> str:
    """Bring a text into one visible line of at most `width` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else f"{line[: width - 3]}..."


def say(text: str) -> None:
    """Write a line to standard output.

    Raises:
        OutputClosedError: nobody reads any more.
    """
    try:
        click.echo(text)
    except BrokenPipeError as error:
        raise OutputClosedError from error


def complain(text: str) -> None:
    """Write an error to standard error; its text is visible already."""
    with suppress(OSError):  # nobody is left to tell
        click.echo(text, err=True)


def notice(text: str) -> None:
    """Write a dim line to standard error, plain where that is no terminal or `NO_COLOR` is set."""
    with suppress(OSError):  # likewise
        click.echo(click.style(text, dim=True), err=True, color=False if os.environ.get("NO_COLOR") else None)


class MessageLines:
    """Shows the messages of hooks as lines on standard error."""

    def show_message(self, message: str, level: str, source: str = "hook", /) -> None:
        """Show one message."""
        notice(f"{level}: {one_line(message)} ({one_line(source)})")
