"""A conversation in a session: its turns, and what the person chose for the next ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Self

import attrs

from amplifier.app.commands.modes import PlanMode, SessionModes
from amplifier.app.sessions.opened import OpenSession, TurnEvents
from amplifier_kit.commands import CommandError, WrittenText
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from amplifier_sdk.messages import MessageDict

__all__ = ["Talk", "TalkCommands"]


@attrs.define(eq=False)
class Talk:
    """A conversation; make it with `Talk.of`.

    Args:
        opened: the session.
        mode: keeps the model from changing anything while it is on.
        provider: who answers the next turns; `None` leaves it to the loop.
        model: the model that answers them; `None` likewise.
        starts: where each turn begins in the history, system messages not counted.
        turn_ids: the ids of the turns, by where they begin.
        columns: how wide answers of commands may be.
    """

    opened: OpenSession
    mode: PlanMode
    provider: str | None = None
    model: str | None = None
    starts: list[int] = attrs.field(factory=list)
    turn_ids: dict[int, str] = attrs.field(factory=dict)
    columns: int = 79

    @classmethod
    def of(cls, opened: OpenSession) -> Self:
        """Begin or resume the conversation of a session."""
        ids = _stored_turns(opened)
        mode = PlanMode(opened.session.coordinator)
        talk = cls(opened, mode, starts=[*ids], turn_ids=ids)
        # Of the session's own turns alone: its children have no place in this history.
        hooks = opened.session.coordinator.hooks
        # A turn that runs one command of the person's submits no prompt.
        for event in (PROMPT_SUBMIT, TOOL_PRE):
            hooks.register(
                str(event), talk._note_turn, name="talk", decides=False, inherited=False
            )
        return talk

    def _note_turn(self, _: str, data: dict[str, object]) -> None:
        if self.starts:
            self.turn_ids[self.starts[-1]] = str(data.get("turn_id", ""))

    @property
    def modes(self) -> SessionModes:
        """The modes that the session can be in: plan mode is one of them."""
        return SessionModes(self.opened.session.coordinator, self.mode)

    @property
    def metadata(self) -> JSONObject:
        """What the next turn says of whom it asks."""
        chosen = {"provider": self.provider, "model": self.model}
        return {name: value for name, value in chosen.items() if value is not None}

    @asynccontextmanager
    async def stream(
        self,
        prompt: Prompt,
        metadata: Mapping[str, JSONValue] | None = None,
        *,
        typed: str | None = None,
        written: WrittenText | None = None,
    ) -> AsyncIterator[TurnEvents]:
        """Take a turn, as `OpenSession.stream` does; `metadata` wins over what the person chose."""
        # Counted before the turn: its own messages may be changed by modules while it
        # runs.
        before = len(await self.said())
        self.starts.append(before)
        try:
            every = {**self.metadata, **(metadata or {})}
            async with self.opened.stream(
                prompt, typed=typed, written=written, metadata=every
            ) as events:
                yield events
        finally:
            if len(await self.said()) == before:
                self.starts.pop()  # nothing of it is in the history
        await self.opened.note_choice(self.provider, self.model)

    async def said(self) -> Sequence[MessageDict]:
        """Return the history without system messages."""
        _, said = await self._history()
        return said

    def require_over(self) -> None:
        """Refuse to change the history while a turn of it was left until a person answers.

        Raises:
            CommandError: one was.
        """
        if self.opened.left:
            message = "The last turn waits for an answer, and continues with the history as it is; a prompt ends it"
            raise CommandError(message)

    async def forget(self, first: int) -> None:
        """Give up the turns from a number on, counted from 0; the files that they changed stay.

        Raises:
            CommandError: the last turn was left until a person answers.
            OSError: it could not be stored.
        """
        self.require_over()
        instructions, said = await self._history()
        starts = self.starts[:first]
        await self.opened.rewrite(
            [*instructions, *said[: self.starts[first]]], turns=len(starts)
        )
        self.starts = starts

    async def clear(self) -> None:
        """Give up the whole conversation; the agent's instruction stays.

        Raises:
            CommandError: the last turn was left until a person answers.
            OSError: it could not be stored.
        """
        self.require_over()
        instructions, _ = await self._history()
        await self.opened.rewrite(instructions, turns=0)
        self.starts.clear()

    async def _history(self) -> tuple[list[MessageDict], list[MessageDict]]:
        """Return the system messages, and all others."""
        instructions, said = list[MessageDict](), list[MessageDict]()
        for message in await self.opened.session.coordinator.context.get_messages():
            is_instruction = message.get("role") == "system"
            (instructions if is_instruction else said).append(message)
        return instructions, said


@attrs.frozen(eq=False)
class TalkCommands:
    """Commands about a conversation, which is `talk`."""

    talk: Talk


def _stored_turns(opened: OpenSession) -> dict[int, str]:
    """Return the turns of a stored session, by where they begin."""
    writer = opened.writer
    if writer is None:
        return {}
    lines = writer.transcript.lines
    turns = {
        at: line.turn
        for at, line in enumerate(lines)
        if at == 0 or lines[at - 1].turn != line.turn
    }
    # of one that was left until a person answers only the journal says something
    at = len(lines)
    for turn in writer.journal.turns:
        turns[at] = turn.turn_id
        at += len(turn.messages)
    return turns
