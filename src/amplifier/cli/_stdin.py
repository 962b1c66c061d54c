"""The prompt of `amplifier run`: its argument, standard input, or both."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, Final, cast

import click

from amplifier.app.sessions.given_prompts import GivenPrompt
from amplifier.cli._terminal import notice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedReader
    from pathlib import Path

    from amplifier_sdk.media import MediaBlock

__all__ = ["read_prompt"]

_PIECE: Final = 65_536
_LOOKED_AT: Final = 1_000_000
_MAX_BYTES: Final = 8_000_000
"""More than any model reads at once: two million tokens of four characters."""


def read_prompt(
    argument: str | None, *, mentions: bool = False, files: Sequence[Path] = ()
) -> GivenPrompt:
    """Return the argument with what is piped in below it; without an argument what is piped in alone.

    With an argument only a pipe or a file is read: a service's standard input may stay open for ever.

    Args:
        argument: what the person typed.
        mentions: whether what is piped in counts as typed.
        files: images, documents and other media that the model sees behind the prompt.

    Raises:
        click.UsageError: there is no prompt, or a file cannot be read, is too large, or is none that models take.
        click.ClickException: more is piped in than a model could read.
    """
    if argument is None or _is_pipe_or_file():
        piped = _read()
    else:
        piped = ""
    parts = [part for part in (argument or "", piped.rstrip("\n")) if part.strip()]
    if not parts:
        raise click.UsageError(
            "there is no prompt; give one as argument or on standard input"
        )
    text = _sound("\n\n".join(parts))
    media = _read_media(files)
    if mentions:
        return GivenPrompt(text, text, media)
    if _mentions_files(piped):
        notice(
            "Mentions in what is piped in are not followed; --mentions follows them."
        )
    return GivenPrompt(text, _sound(argument or ""), media)


def _read_media(files: Sequence[Path]) -> tuple[MediaBlock, ...]:
    if not files:
        return ()
    # few prompts show any
    from amplifier_kit.media.files import media_file
    from amplifier_sdk.errors import MediaError

    try:
        return tuple(map(media_file, files))
    except MediaError as error:
        raise click.UsageError(f"--file: {error}") from error


def _sound(text: str) -> str:
    """Replace halves of surrogate pairs, which an argument that is no UTF-8 has, and which no provider can send."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _mentions_files(text: str) -> bool:
    # most prompts have nothing piped in
    from amplifier.app.mentions.scanner import has_mentions

    return "@" in text[:_LOOKED_AT] and has_mentions(text[:_LOOKED_AT])


def _read() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    pieces: list[bytes] = []
    size = 0
    # typeshed says no more than that it is binary
    stream = cast("BufferedReader", sys.stdin.buffer)
    # one long read would not hear a Ctrl-C between two system calls
    while piece := stream.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_BYTES:
            raise click.ClickException(
                f"standard input has more than {_MAX_BYTES // 1_000_000} MB, which no model reads; pipe in a part of"
                " it, such as the last lines, or name the file in the prompt and let a tool read it"
            )
    return b"".join(pieces).decode("utf-8-sig", "replace")


def _is_pipe_or_file() -> bool:
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or no file of the system
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
