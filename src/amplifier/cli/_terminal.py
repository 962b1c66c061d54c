"""Text on its way to a terminal: what models and tools write is shown and never obeyed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Final

import click

from amplifier_kit.terminal import has_colour, one_line, visible

__all__ = [
    "MessageLines",
    "OutputClosedError",
    "alert",
    "complain",
    "has_colour",
    "inert_json",
    "notice",
    "notice_lines",
    "one_line",
    "say",
    "silence_notices",
    "visible",
]


_UNSAFE: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys and JSON lets stand as it is."""


_QUIET: Final = ContextVar("quiet", default=False)
"""Whether notices are left out; worker threads and tasks inherit it."""

_LOUD: Final = ("warning:", "error:")
"""How a notice begins that `--quiet` does not leave out."""


class OutputClosedError(Exception):
    """Whoever read standard output is gone."""


def say(text: str) -> None:
    """Write a line to standard output.

    Raises:
        OutputClosedError: nobody reads any more.
    """
    try:
        click.echo(text)
    except BrokenPipeError as error:
        raise OutputClosedError from error


def inert_json(text: str) -> str:
    """Write what a terminal obeys as JSON's own escapes, in a text that is JSON."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def complain(text: str) -> None:
    """Write an error to standard error; its text is visible already."""
    with suppress(OSError):  # nobody is left to tell
        click.echo(text, err=True)


def silence_notices() -> Callable[[], None]:
    """Leave notices out, but for warnings and errors; call what it returns to undo that."""
    return partial(_QUIET.reset, _QUIET.set(True))


def notice(text: str) -> None:
    """Write a dim line to standard error as `alert` does, unless notices are silenced."""
    if not _QUIET.get() or text.startswith(_LOUD):
        alert(text)


def alert(text: str) -> None:
    """Write a dim line to standard error, plain where `has_colour` says no.

    For what a person has to see whatever was silenced: what a question is about, what was allowed without one.
    """
    with suppress(OSError):  # likewise
        click.echo(click.style(text, dim=True), err=True, color=has_colour(sys.stderr))


def notice_lines(text: str) -> None:
    """Write lines to standard error in the colours that they have, unless notices are silenced; they are visible."""
    if not _QUIET.get():
        with suppress(OSError):  # likewise
            click.echo(text, err=True, color=has_colour(sys.stderr))


class MessageLines:
    """Shows the messages of hooks as lines on standard error."""

    def show_message(self, message: str, level: str, source: str = "hook", /) -> None:
        """Show one message."""
        notice(f"{level}: {one_line(message)} ({one_line(source)})")
