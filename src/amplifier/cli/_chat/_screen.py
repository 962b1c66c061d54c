"""What a conversation shows: lines that stay, and what stands around the prompt."""

from __future__ import annotations

import time
import traceback
from typing import Final

import attrs

from amplifier.app.commands.talk import Talk
from amplifier.app.settings.schema import DisplaySettings
from amplifier.cli._chat._keys import Board
from amplifier.cli._chat._markdown import Rendering, columns, wrapped
from amplifier.cli._chat._painter import Painter
from amplifier.cli._chat._queue import PromptQueue
from amplifier.cli._chat._status import StatusLine
from amplifier.cli._exits import describe
from amplifier.cli._people import plain
from amplifier_kit.commands import CommandAnswer
from amplifier_kit.redaction import SinkRedactor, redactor_of
from amplifier_kit.terminal import one_line, visible

__all__ = ["ChatScreen"]

_BELL: Final = "\a"
_NOTIFY: Final = "\x1b]9;"
"""Begins a notification of the desktop, in the terminals that know it; a bell ends it."""


@attrs.frozen(eq=False)
class ChatScreen:
    """Shows a conversation, without the secrets that its session knows.

    Args:
        board: keyboard and terminal.
        rendering: lays text out.
        talk: the conversation.
        debug: show tracebacks.
    """

    board: Board
    rendering: Rendering
    talk: Talk
    debug: bool = False

    @property
    def redactor(self) -> SinkRedactor:
        """The session's."""
        return redactor_of(self.talk.opened.session.coordinator)

    def echo(self, text: str) -> None:
        """Show what was typed, where the prompt took it away."""
        if self.board.has_live:
            first, *rest = visible(text.strip("\n")).split("\n")
            self.board.write(
                self.rendering.line(
                    "\n".join([f"> {first}", *(f"  {line}" for line in rest)]), "bold"
                )
            )

    def answer(self, answer: CommandAnswer) -> None:
        """Show what a command answers."""
        text = visible(self.redactor.redact_text(answer.text))
        if answer.is_diff:
            self.board.write(self.rendering.diff(text))
            return
        self.board.write(wrapped(text) + "\n")

    def call_attention(self, reason: str, display: DisplaySettings) -> None:
        """Ring the terminal's bell, or have it show a notification, as the settings say.

        Args:
            reason: why; a text of our own, which the terminal obeys nothing of.
            display: says how.
        """
        match display.notification:
            case "bell":
                self.board.write(_BELL)
            case "desktop":
                self.board.write(f"{_NOTIFY}Amplifier: {reason}{_BELL}")
            case "none":
                pass

    def note(self, text: str) -> None:
        """Show a remark."""
        self.board.write(self.rendering.line(wrapped(visible(text)), "dim"))

    def complain(self, text: str) -> None:
        """Show an error."""
        shown = wrapped(visible(self.redactor.redact_text(text)))
        self.board.write(self.rendering.line(shown, "red"))

    def fail(self, error: Exception) -> None:
        """Show what was raised."""
        if self.debug:
            self.complain("".join(traceback.format_exception(error)).rstrip())
        self.complain(f"Error: {describe(error)}")

    def renew(
        self,
        painter: Painter | None,
        waiting: PromptQueue,
        status: StatusLine,
        *,
        is_working: bool,
    ) -> None:
        """Show what is incomplete, what waits, and how things stand.

        Args:
            painter: shows the running turn; `None` between turns.
            waiting: what was typed and is not part of the conversation yet.
            status: how things stand.
            is_working: whether a turn or a command runs.
        """
        width = columns() - 1
        if painter is None:
            rows = []
        else:
            rows = [painter.live(width)]
        if status.figures.retry is not None:
            retry = plain(status.figures.retry.text(time.monotonic()))
            rows.append(one_line(self.redactor.redact_text(retry), width))
        rows += waiting.rows(width)
        if is_working:
            doing = "working"
        else:
            doing = ""
        if painter is not None:
            doing = f"working {painter.seconds:.0f} s, Esc stops"
        shown = "\n".join(filter(None, rows))
        self.board.show(shown, status.text(doing, width))
