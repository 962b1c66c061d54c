"""The prompt of `amplifier run`: its argument, standard input, or both."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, Final, cast

import click

if TYPE_CHECKING:
    from io import BufferedReader

__all__ = ["read_prompt"]

_PIECE: Final = 65_536


def read_prompt(argument: str | None) -> str:
    """Return the argument with what is piped in below it; without an argument what is piped in alone.

    With an argument only a pipe or a file is read: a service's standard input may stay open for ever.

    Raises:
        click.UsageError: there is no prompt.
    """
    piped = _read() if argument is None or _is_pipe_or_file() else ""
    parts = [part for part in (argument or "", piped.rstrip("\n")) if part.strip()]
    if not parts:
        raise click.UsageError("there is no prompt; give one as argument or on standard input")
    # An argument that is no UTF-8 arrives with halves of surrogate pairs, which no provider can send.
    return "\n\n".join(parts).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _read() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    pieces = []
    stream = cast("BufferedReader", sys.stdin.buffer)  # typeshed says no more than that it is binary
    while piece := stream.read1(_PIECE):  # one long read would not hear a Ctrl-C between two system calls
        pieces.append(piece)
    return b"".join(pieces).decode("utf-8-sig", "replace")


def _is_pipe_or_file() -> bool:
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or no file of the system
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
