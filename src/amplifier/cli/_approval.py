"""Questions of hooks, asked at the terminal itself, since standard input and output may be pipes.

A question drops what was typed before it appeared: an answer is given by somebody who has read it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

import anyio
import attrs
import click
from anyio import to_thread

from amplifier.cli._diffs import coloured_diff, wrapped_beside
from amplifier.cli._question_texts import value_from
from amplifier.cli._terminal import alert, one_line
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.terminal import has_colour
from amplifier_sdk.assessments import EDITS
from amplifier_sdk.contracts import ApprovalSystem
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.legible import escaped
from amplifier_sdk.person_questions import PersonQuestion, choices_of

__all__ = ["AllowAll", "Consent", "TerminalApproval", "read_line"]

TERMINAL: Final = "/dev/tty"
REFUSAL: Final = "Deny"
_WRITES: Final = "Your answer (empty for none): "


_FLAGS: Final = (
    "--accept-edits allows edits of files, --yes whatever is asked, without a question"
)


@attrs.frozen(kw_only=True)
class Consent:
    """What a person allows before anything is asked: everything, or edits of files."""

    everything: bool = False
    edits: bool = False

    @property
    def accepted(self) -> frozenset[str]:
        """The kinds of calls that are accepted."""
        if self.edits:
            return frozenset({EDITS})
        return frozenset()

    def approval(self, otherwise: ApprovalSystem | None = None) -> ApprovalSystem:
        """Return who answers the questions that are left: nobody is asked where everything is allowed."""
        if self.everything:
            return AllowAll()
        return otherwise or TerminalApproval()


class TerminalApproval:
    """Asks whoever sits at the terminal from which the command was started."""

    async def request_approval(
        self, prompt: str, options: Sequence[str], timeout: float, default: str, /
    ) -> str:
        """Return the option that the person chose; the end of their input denies.

        Raises:
            ApprovalUnavailableError: there is no terminal, or the command runs in its background.
        """
        # what is read of the turn is written before the question
        await anyio.lowlevel.checkpoint()
        with _open_terminal() as (descriptor, screen):
            width = shutil.get_terminal_size().columns - 1
            question = _question(prompt, options, timeout, default)
            question = wrapped_beside(question, width)
            screen.write(coloured_diff(question) if has_colour(screen) else question)
            screen.flush()
            while (line := await read_line(descriptor)) is not None:
                chosen = _choice(line, options)
                if chosen is not None:
                    return chosen
                screen.write("Choose by number or by name: ")
                screen.flush()
        return REFUSAL

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return what the person writes or chooses; `None` for an empty line, and at the end of their input.

        Raises:
            ApprovalUnavailableError: as for `request_approval`.
        """
        await anyio.lowlevel.checkpoint()  # likewise
        with _open_terminal() as (descriptor, screen):
            lines = [escaped(question.prompt), *_answers(question.schema)]
            screen.write("\n".join(("", *lines, _WRITES)))
            screen.flush()
            while line := (await read_line(descriptor) or "").strip():
                try:
                    return value_from(question.schema, line)
                except click.UsageError as error:
                    screen.write(f"{one_line(error.message)}\n{_WRITES}")
                    screen.flush()
        return None


class AllowAll:
    """Allows whatever is asked, and says so on standard error."""

    async def request_approval(self, prompt: str, *_: object) -> str:
        """Return the answer that allows once."""
        alert(f"allowed by --yes: {one_line(prompt, 1000)}")
        return "Allow once"


@contextmanager
def _open_terminal() -> Iterator[tuple[int, TextIO]]:
    try:
        # Without O_NOCTTY a daemon that opens a terminal would take it as its own.
        descriptor = os.open(TERMINAL, os.O_RDWR | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        raise ApprovalUnavailableError(
            f"there is no terminal to ask at; {_FLAGS}"
        ) from error
    with closing_handle(descriptor):
        import termios  # where there is no terminal there may be no such module

        # A background job that reads its terminal is stopped by the system, and would
        # look as if it hung.
        if os.tcgetpgrp(descriptor) != os.getpgrp():
            raise ApprovalUnavailableError(
                f"the command runs in the background of its terminal; {_FLAGS}"
            )
        # What was typed before the question cannot be an answer to it.
        termios.tcflush(descriptor, termios.TCIFLUSH)
        with open(descriptor, "w", errors="backslashreplace", closefd=False) as screen:
            yield descriptor, screen


def _question(prompt: str, options: Sequence[str], timeout: float, default: str) -> str:
    lines = [
        # Options may hold names that a model chose: on one line, none can look like
        # another option.
        f"  {number}  {one_line(escaped(option, allowed=''))}"
        for number, option in enumerate(options, 1)
    ]
    if timeout < float("inf"):
        silence = f"{default} after {timeout:g} s"
    else:
        silence = "no time limit"
    return "\n".join(("", escaped(prompt), *lines, f"Your choice ({silence}): "))


def _answers(schema: Mapping[str, JSONValue]) -> Iterator[str]:
    """Say what is to be written, where it is no text."""
    choices = choices_of(schema)
    for choice in choices:
        yield f"  {one_line(escaped(choice, allowed=''))}"
    if not choices and schema.get("type") != "string":
        yield escaped(f"JSON that fits {json.dumps(dict(schema))}", allowed="")


def _choice(line: str, options: Sequence[str]) -> str | None:
    """Return the option that a line means: its number, its text, or a beginning that only one of them has."""
    text = line.strip().casefold()
    if text.isdecimal() and 0 < int(text) <= len(options):
        return options[int(text) - 1]
    names = [option.strip().casefold() for option in options]
    if text in names:
        return options[names.index(text)]
    begun = [
        option
        for option, name in zip(options, names, strict=True)
        if text and name.startswith(text)
    ]
    if len(begun) == 1:
        return begun[0]
    return None


async def read_line(descriptor: int) -> str | None:
    """Wait for a line of the terminal, which hands out whole ones; `None` at the end of the input."""
    await _until_readable(descriptor)
    try:
        data = os.read(descriptor, 65_536)
    except OSError:  # the terminal hung up
        return None
    if data:
        return data.decode(errors="replace")
    return None


async def _until_readable(descriptor: int) -> None:
    """Wait in a thread, since an event loop cannot watch every terminal; a byte in a pipe calls the thread off."""
    woken, waker = os.pipe()
    is_readable = anyio.Event()

    async def wait() -> None:
        # The thread watches the descriptors until the byte arrives; let go of earlier,
        # they would be closed under it.
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(select.select, (descriptor, woken), (), ())
        is_readable.set()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            try:
                await is_readable.wait()
            finally:
                os.write(waker, b"\0")
    finally:
        os.close(woken)
        os.close(waker)
