"""Questions of hooks while a prompt is on the screen: the prompt makes way, and is there again with what was typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import attrs

from amplifier.cli._approval import TerminalApproval
from amplifier.cli._chat._keys import Board
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.person_questions import PersonQuestion

__all__ = ["ChatApproval"]


@attrs.define(eq=False)
class ChatApproval:
    """Asks at the terminal, one question at a time.

    Args:
        board: returns the keyboard that makes way.
        ask: shows what is begun of the answer, so that it stands before the question that it is given.
        call: calls the person.
        terminal: asks.
    """

    board: Callable[[], Board]
    ask: Callable[[str], None]
    call: Callable[[], None]
    terminal: TerminalApproval = attrs.field(factory=TerminalApproval)
    _one: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def request_approval(
        self, prompt: str, options: Sequence[str], timeout: float, default: str, /
    ) -> str:
        """Return the option that the person chose; the end of their input denies.

        Raises:
            ApprovalUnavailableError: there is no terminal.
        """
        await anyio.lowlevel.checkpoint()  # what came of the turn is read first
        self.ask(prompt)
        async with self._one, self.board().away():
            self.call()
            return await self.terminal.request_approval(
                prompt, options, timeout, default
            )

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return what the person writes or chooses; `None` where they do not answer.

        Raises:
            ApprovalUnavailableError: there is no terminal.
        """
        await anyio.lowlevel.checkpoint()  # likewise
        self.ask(question.prompt)
        async with self._one, self.board().away():
            self.call()
            return await self.terminal.ask_person(question)
