"""The chat once its prompt is shown: the session is opened, and the conversation held in it."""

from __future__ import annotations

from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.modes import MODES
from amplifier.app.commands.talk import Talk
from amplifier.app.directories import FOLDER
from amplifier.app.sessions.opened import open_session
from amplifier.app.sessions.selection import SelectedSession
from amplifier.app.text.message_visibility import visible_texts
from amplifier.cli._approval import Consent
from amplifier.cli._chat._blocks import MarkdownBlocks
from amplifier.cli._chat._commands import ChatCommands
from amplifier.cli._chat._completion import ChatCompleter
from amplifier.cli._chat._conversation import ChatLoop
from amplifier.cli._chat._keyboard import Keyboard
from amplifier.cli._chat._markdown import Rendering
from amplifier.cli._chat._plain import PlainKeyboard
from amplifier.cli._chat._questions import ChatApproval
from amplifier.cli._chat._screen import ChatScreen
from amplifier.cli._chat._typed_keys import TypedKeys
from amplifier.cli._interrupts import Interrupts
from amplifier.cli._session_selection import report_opening
from amplifier.cli._terminal import MessageLines, notice
from amplifier.cli._turns import TURNS
from amplifier_kit.redaction import redactor_of
from amplifier_kit.terminal import one_line

__all__ = ["OpenedChat"]

_RECALLED: Final = 40
"""How many lines of the last turn are shown when a session is resumed."""


@attrs.define(eq=False)
class OpenedChat:
    """The session's side of a chat.

    Args:
        board: where it is shown and typed.
        rendering: lays text out.
        typed: what is typed, also before the session is open.
        consent: what the person allows before anything is asked.
        first_tool: a tool that must be mounted.
        debug: show tracebacks.
    """

    board: Keyboard | PlainKeyboard
    rendering: Rendering
    typed: TypedKeys
    consent: Consent
    first_tool: str | None = attrs.field(default=None, kw_only=True)
    debug: bool = attrs.field(default=False, kw_only=True)
    _conversation: ChatLoop | None = attrs.field(default=None, init=False)

    @property
    def is_working(self) -> bool:
        """Whether a turn or a command runs."""
        return self._conversation is not None and self._conversation.is_working

    async def hold(self, chosen: SelectedSession, interrupts: Interrupts) -> str | None:
        """Open the session and hold the conversation; return the session that the person resumes after it."""
        opening = open_session(
            chosen.composition,
            record=chosen.record,
            store=chosen.store,
            first_tool=self.first_tool,
            display=MessageLines(),
            approval=self.consent.approval(
                ChatApproval(lambda: self.board, self._ask, self._call)
            ),
            accepted=self.consent.accepted,
            shown=TURNS | {"thinking"},
        )
        async with opening as opened:
            report_opening(opened)
            opened.offer_background()
            talk = Talk.of(opened)
            screen = ChatScreen(self.board, self.rendering, talk, self.debug)
            conversation = ChatLoop(
                talk, screen, interrupts, opened.composition.display
            )
            await self._equip(conversation)
            self._conversation = conversation
            await self._recall(talk)
            notice(
                "/help lists the commands, Esc stops, Shift-Tab changes the mode, Ctrl-D leaves."
            )
            await conversation.run(self.typed)
            # the prompt is gone before what closes the session is reported
            await self.typed.end()
            return conversation.followed_by

    async def _equip(self, conversation: ChatLoop) -> None:
        commands = ChatCommands(conversation)
        if isinstance(self.board, Keyboard):
            commands = ChatCommands(conversation, self.board.pick_session)
            conversation.edit = self.board.edit
        conversation.registry, problems = await make_registry(
            conversation.talk, commands.waiting(), at_once=commands.at_once()
        )
        for problem in problems:
            notice(f"warning: going on without a command. {one_line(problem, 300)}")
        if isinstance(self.board, Keyboard):
            self.board.complete(self._completer(conversation))

    def _ask(self, question: str) -> None:
        if self._conversation is not None:
            self._conversation.ask(question)

    def _call(self) -> None:
        if self._conversation is not None:
            chat = self._conversation
            chat.screen.call_attention("an answer of yours is needed", chat.display)

    def _completer(self, conversation: ChatLoop) -> ChatCompleter:
        talk = conversation.talk
        dirs = talk.opened.composition.dirs
        roots = {"user:": dirs.home, "project:": dirs.root / FOLDER}
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
        return ChatCompleter(conversation.registry, dirs.working_dir, roots, choices)

    async def _recall(self, talk: Talk) -> None:
        if not talk.starts:
            return
        said = (await talk.said())[talk.starts[-1] :]
        audience = talk.opened.composition.display.visibility
        text = "\n\n".join(
            await to_thread.run_sync(lambda: list(visible_texts(said, audience)))
        )
        blocks = MarkdownBlocks()
        text = redactor_of(talk.opened.session.coordinator).redact_text(text)
        shown = [
            self.rendering.block(block) for block in [*blocks.feed(text), *blocks.end()]
        ]
        lines = "\n".join(shown).split("\n")
        # The end of an answer says more of where the conversation stands than its
        # beginning.
        if len(lines) > _RECALLED:
            lines = ["...", *lines[-_RECALLED:]]
        self.board.write("\n".join(lines) + "\n")
