"""Holding a chat: the session is opened, the terminal equipped, and both are left as they were."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from typing import Final

from anyio import to_thread

from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.session_modes import MODES
from amplifier.app.commands.talk import Talk
from amplifier.app.directories import FOLDER
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.opened import open_session
from amplifier.app.sessions.selection import SelectedSession, SessionSelector
from amplifier.app.settings.schema import DisplaySettings
from amplifier.app.text.message_visibility import told
from amplifier.cli._approval import Consent
from amplifier.cli._chat._blocks import MarkdownBlocks
from amplifier.cli._chat._commands import ChatCommands
from amplifier.cli._chat._conversation import ChatLoop
from amplifier.cli._chat._keyboard import Keyboard
from amplifier.cli._chat._markdown import Rendering, has_screen, wrapped
from amplifier.cli._chat._plain import PlainKeyboard
from amplifier.cli._chat._questions import ChatApproval
from amplifier.cli._chat._screen import ChatScreen
from amplifier.cli._chat._stream import LineStream
from amplifier.cli._interrupts import Interrupts, run_interruptible
from amplifier.cli._logs import configure_logs
from amplifier.cli._output import Output
from amplifier.cli._session_selection import choose_session, tell_opening
from amplifier.cli._terminal import MessageLines, notice
from amplifier.cli._turns import TURNS
from amplifier_kit.redaction import redactor_of
from amplifier_kit.terminal import has_colour, one_line

__all__ = ["converse"]

ASKS: Final = Consent()
_RECALLED: Final = 40
"""How many lines of the last turn are shown when a session is resumed."""


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
        chat = _Chat(options.first_tool, debug, consent, chosen.composition.display)
        with chat.output_of_others():
            configure_logs(debug=debug)  # to where standard error leads now
            run_interruptible(partial(chat.hold, chosen), backend)
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
        display: DisplaySettings,
    ) -> None:
        self.followed_by: str | None = None
        self._consent = consent
        self._first_tool = first_tool
        self._debug = debug
        self._conversation: ChatLoop | None = None
        output = Output.standard()
        self._board: Keyboard | PlainKeyboard
        # A screen reader reads what is written, in its order: nothing is laid out or drawn anew.
        is_linear = display.screen_reader
        if is_linear:
            self._rendering = Rendering(is_rich=False, has_colour=False)
        else:
            self._rendering = Rendering.of(sys.stdout)
        if has_screen() and not is_linear:
            self._board = Keyboard(
                output, is_working=self._is_working, has_colour=has_colour(sys.stdout)
            )
        else:
            self._board = PlainKeyboard(output, is_working=self._is_working)

    async def hold(self, chosen: SelectedSession, interrupts: Interrupts) -> None:
        """Open the session and hold the conversation."""
        opening = open_session(
            chosen.composition,
            record=chosen.record,
            store=chosen.store,
            first_tool=self._first_tool,
            display=MessageLines(),
            approval=self._consent.approval(
                ChatApproval(lambda: self._board, self._ask, self._call)
            ),
            accepted=self._consent.accepted,
            shown=TURNS | {"thinking"},
        )
        async with opening as opened:
            tell_opening(opened)
            opened.offer_background()
            talk = Talk.of(opened)
            screen = ChatScreen(self._board, self._rendering, talk, self._debug)
            conversation = ChatLoop(
                talk, screen, interrupts, opened.composition.display
            )
            commands = ChatCommands(conversation)
            if isinstance(self._board, Keyboard):
                commands = ChatCommands(conversation, self._board.pick_session)
                conversation.edit = self._board.edit
            conversation.registry, problems = await make_registry(
                talk, commands.waiting(), at_once=commands.at_once()
            )
            for problem in problems:
                notice(f"warning: going on without a command. {one_line(problem, 300)}")
            self._equip(conversation, is_kept=opened.kept is not None)
            self._conversation = conversation
            await self._recall(talk)
            notice(
                "/help lists the commands, Esc stops, Shift-Tab changes the mode, Ctrl-D leaves."
            )
            await conversation.run()
            self.followed_by = conversation.followed_by

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

    def _ask(self, question: str) -> None:
        if self._conversation is not None:
            self._conversation.ask(question)

    def _call(self) -> None:
        if self._conversation is not None:
            chat = self._conversation
            chat.screen.call_attention("an answer of yours is needed", chat.display)

    def _is_working(self) -> bool:
        return self._conversation is not None and self._conversation.is_working

    def _equip(self, conversation: ChatLoop, *, is_kept: bool) -> None:
        if not isinstance(self._board, Keyboard):
            return
        from prompt_toolkit.history import InMemoryHistory

        from amplifier.cli._chat._completion import ChatCompleter
        from amplifier.cli._chat._history import HistoryFile

        talk = conversation.talk
        places = talk.opened.composition.places
        roots = {"user:": places.home, "project:": places.root / FOLDER}
        roots |= {
            f"{name}:": found.path
            for name, found in talk.opened.composition.collections.all().items()
        }
        choices = {
            "mode": lambda: MODES,
            "think": lambda: ("on", "off"),
            "provider": lambda: (*talk.opened.session.coordinator.providers, "auto"),
            "help": lambda: conversation.registry.names,
        }
        history = HistoryFile(places.state) if is_kept else InMemoryHistory()
        self._board.equip(
            history,
            ChatCompleter(conversation.registry, places.working_dir, roots, choices),
        )

    async def _recall(self, talk: Talk) -> None:
        """Show the last turn of a resumed session."""
        if not talk.starts:
            return
        said = (await talk.said())[talk.starts[-1] :]
        audience = talk.opened.composition.display.visibility
        text = "\n\n".join(await to_thread.run_sync(lambda: list(told(said, audience))))
        blocks = MarkdownBlocks()
        text = redactor_of(talk.opened.session.coordinator).redact_text(text)
        shown = [
            self._rendering.block(block)
            for block in [*blocks.feed(text), *blocks.end()]
        ]
        lines = "\n".join(shown).split("\n")
        # The end of an answer says more of where the conversation stands than its
        # beginning.
        if len(lines) > _RECALLED:
            lines = ["...", *lines[-_RECALLED:]]
        self._board.write("\n".join(lines) + "\n")
