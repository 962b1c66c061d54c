"""What was typed while a turn runs, and is not part of the conversation yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

import anyio
import attrs

from amplifier.app.sessions.opened import OpenSession
from amplifier_kit.commands import WrittenText
from amplifier_kit.terminal import cut, one_line
from amplifier_sdk.errors import SessionError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Prompt", "PromptQueue"]

_ROWS: Final = 3


@attrs.frozen(kw_only=True)
class Prompt:
    """What becomes a turn, or a command.

    Args:
        text: what is sent, or the command.
        command: the command that made the text, so that it is none itself; `None` where it was typed.
        typed: what the person typed of the text; `None` for all of it.
        written: what they wrote in a file of their own.
        metadata: of the turn.
        placeholder: what is shown of a text that was pasted; `None` for all of it.
    """

    text: str
    command: str | None = None
    typed: str | None = None
    written: WrittenText | None = None
    metadata: Mapping[str, JSONValue] = attrs.field(factory=dict)
    placeholder: str | None = None

    @property
    def shown(self) -> str:
        """What was typed."""
        return self.command or self.placeholder or self.text


@attrs.define(eq=False)
class PromptQueue:
    """Prompts that wait for the end of the turn, and texts that wait for the agent to read them.

    Args:
        opened: the session.
    """

    opened: OpenSession
    _prompts: deque[Prompt] = attrs.field(factory=deque)
    _texts: list[str] = attrs.field(factory=list)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    def __bool__(self) -> bool:
        return bool(self._prompts)

    def add(self, prompt: Prompt) -> None:
        """Let a prompt wait for the end of the turn."""
        self._prompts.append(prompt)
        self.wake()

    def take(self) -> Prompt:
        """Return the first that waits."""
        return self._prompts.popleft()

    def drop(self) -> list[Prompt]:
        """Forget the prompts that wait, and return them."""
        dropped = [*self._prompts]
        self._prompts.clear()
        return dropped

    def wake(self) -> None:
        """Let whoever waits for a change look."""
        # An event stays set: each change wakes who waits now, and the next one waits
        # anew.
        self._changed.set()
        self._changed = anyio.Event()

    async def wait(self) -> None:
        """Wait for a change."""
        await self._changed.wait()

    def steer(self, text: str) -> None:
        """Say a text to the agent that works; where its loop does not listen, let it wait."""
        session = self.opened.session
        if not getattr(session.coordinator.orchestrator, "takes_steering", False):
            self.add(Prompt(text=text))
            return
        try:
            session.steer(text)
        except SessionError:  # as many as can wait are waiting
            self.add(Prompt(text=text))
            return
        self._texts.append(text)

    def heard(self, text: str) -> None:
        """Note that the agent read a text; an application or a module may have said it."""
        if text in self._texts:
            self._texts.remove(text)

    def take_back(self) -> None:
        """Let the texts that came too late for the turn be the next prompts."""
        unread = set(self.opened.session.withdraw_steering())
        self._prompts.extendleft(
            # `extendleft` turns the order round, so it is given the texts backwards.
            Prompt(text=text)
            for text in reversed(self._texts)
            if text in unread
        )
        self._texts.clear()

    def rows(self, width: int) -> Iterator[str]:
        """Yield a row for each of the first that wait."""
        every = [("accepted", text) for text in self._texts]
        every += [("queued", prompt.shown) for prompt in self._prompts]
        for kind, text in every[:_ROWS]:
            yield cut(f"({kind}) {one_line(text, 300)}", width)
        if len(every) > _ROWS:
            yield f"... {len(every) - _ROWS} more"
