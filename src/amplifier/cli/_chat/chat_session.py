"""Holding a chat: the prompt is shown first, and the session is opened while the person types.

What opens it and holds the conversation takes longer to load than all that the prompt needs.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.selection import SelectedSession, SessionSelector
from amplifier.cli._approval import Consent
from amplifier.cli._chat._history import HistoryFile
from amplifier.cli._chat._keyboard import Keyboard
from amplifier.cli._chat._markdown import Rendering, has_screen, wrapped
from amplifier.cli._chat._plain import PlainKeyboard
from amplifier.cli._chat._stream import LineStream
from amplifier.cli._chat._typed_keys import TypedKeys
from amplifier.cli._interrupts import Interrupts, run_interruptible
from amplifier.cli._logs import configure_logs
from amplifier.cli._output import Output
from amplifier.cli._session_selection import choose_session
from amplifier.kernel.groups import open_group
from amplifier_kit.terminal import has_colour

if TYPE_CHECKING:
    from amplifier.cli._chat._opened_chat import OpenedChat

__all__ = ["converse"]

ASKS: Final = Consent()
_OPENING: Final = "opening the session"


def converse(
    options: PlanOptions,
    wanted: SessionSelector,
    consent: Consent = ASKS,
    *,
    backend: str,
    debug: bool,
) -> None:
    """Hold a chat until its end; a turn that fails does not end it."""
    configure_logs(debug=debug)
    chosen = choose_session(options, wanted)
    while True:
        chat = _Chat(options.first_tool, debug, consent, chosen)
        with chat.output_of_others():
            configure_logs(debug=debug)  # to where standard error leads now
            run_interruptible(chat.hold, backend)
        if chat.followed_by is None:
            return
        configure_logs(debug=debug)
        # What the next session is made of is recorded with it.
        followed = SessionSelector(resume=chat.followed_by, choice=wanted.choice)
        chosen = choose_session(PlanOptions(), followed)


class _Chat:
    """The terminal's side of a chat."""

    def __init__(
        self,
        first_tool: str | None,
        debug: bool,
        consent: Consent,
        chosen: SelectedSession,
    ) -> None:
        self.followed_by: str | None = None
        self._consent = consent
        self._first_tool = first_tool
        self._debug = debug
        self._chosen = chosen
        self._opened: OpenedChat | None = None
        # A screen reader reads what is written, in its order: nothing is laid out or drawn anew.
        is_linear = chosen.composition.display.screen_reader
        if is_linear:
            self._rendering = Rendering(is_rich=False, has_colour=False)
        else:
            self._rendering = Rendering.of(sys.stdout)
        self._board: Keyboard | PlainKeyboard
        if has_screen() and not is_linear:
            self._board = self._keyboard()
        else:
            self._board = PlainKeyboard(Output.standard(), is_working=self._is_working)

    def _keyboard(self) -> Keyboard:
        board = Keyboard(
            Output.standard(),
            is_working=self._is_working,
            has_colour=has_colour(sys.stdout),
        )
        if self._chosen.store is not None:
            board.remember(HistoryFile(self._chosen.composition.dirs.state))
        return board

    async def hold(self, interrupts: Interrupts) -> None:
        """Show the prompt, open the session, and hold the conversation."""
        typed = TypedKeys(self._board, partial(interrupts.handle, signal.SIGINT))
        async with open_group() as group:
            group.start_soon(typed.listen)
            try:
                if isinstance(self._board, Keyboard):
                    self._board.show("", _OPENING)
                    await self._board.shown.wait()
                # in a thread: the person may type meanwhile
                make = await to_thread.run_sync(_load)
                self._opened = make(
                    self._board,
                    self._rendering,
                    typed,
                    self._consent,
                    first_tool=self._first_tool,
                    debug=self._debug,
                )
                self.followed_by = await self._opened.hold(self._chosen, interrupts)
            finally:
                group.cancel_scope.cancel()

    @contextmanager
    def output_of_others(self) -> Iterator[None]:
        """Bring what others write above the prompt, where a terminal shows it."""
        # Standard error goes to a file: what others write belongs there, and not on the
        # screen.
        if not sys.stderr.isatty():
            with redirect_stdout(sys.stderr):
                yield
            return
        lines = LineStream(self._write_wrapped, is_terminal=True)
        with redirect_stdout(lines), redirect_stderr(lines):
            try:
                yield
            finally:
                lines.finish()

    def _write_wrapped(self, lines: str) -> None:
        self._board.write(wrapped(lines))

    def _is_working(self) -> bool:
        return self._opened is not None and self._opened.is_working


def _load() -> type[OpenedChat]:
    # what the prompt needs not; see above
    from amplifier.cli._chat._opened_chat import OpenedChat

    return OpenedChat
