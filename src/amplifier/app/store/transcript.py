"""What was said in a session: one line a message, closed by one line a turn.

A turn's messages count once its closing line is there. What stands behind the last one was being written when the
process ended; the journal tells that turn better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Self, TypeAlias

import attrs
from anyio import to_thread

from amplifier_sdk.kit.appendlog import AppendLog, Damage, Durability, Record
from amplifier_sdk.messages import MessageDict

__all__ = ["HOLDS", "Clean", "Transcript", "read_records"]

HOLDS: Final = "transcript"
_MESSAGE: Final = "message"
_TURN: Final = "turn"

Clean: TypeAlias = Callable[[MessageDict], MessageDict]
"""Returns what the file gets in a message's place."""


@attrs.define(eq=False)
class Transcript:
    """The messages of a session but for its system message, which is built anew each time it is opened."""

    _log: AppendLog
    messages: list[MessageDict]
    last_turn: str | None

    @classmethod
    async def open(cls, path: Path, durability: Durability = "written") -> Self:
        """Open the file of a session, or begin one.

        Raises:
            LockedError: somebody else writes it.
            LogFormatError: it is something else, or a newer version's.
            OSError: the system refuses.
        """
        log = await AppendLog.open(path, holds=HOLDS, check=_problem, durability=durability)
        messages, last_turn = read_records(log.take())
        return cls(log, messages, last_turn)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read."""
        return self._log.damage

    async def store(self, turn_id: str, messages: Sequence[MessageDict], clean: Clean | None = None) -> None:
        """Store how a turn left the history; only what is new is written, unless it is another history.

        Args:
            turn_id: the turn.
            messages: the whole history, without system messages.
            clean: returns what the file gets in a message's place.

        Raises:
            OSError: it was not stored; what was stored before stays.
        """
        known = len(self.messages)
        if list(messages[:known]) != self.messages:
            await self._log.replace(await _lines(turn_id, messages, clean))
        else:
            for record in await _lines(turn_id, messages[known:], clean):
                await self._log.append(record.kind, record.data)
            self._log.take()
        await self._log.sync()
        self.messages = list(messages)
        self.last_turn = turn_id

    async def aclose(self) -> None:
        """Close the file."""
        await self._log.aclose()


def read_records(records: Iterable[Record]) -> tuple[list[MessageDict], str | None]:
    """Return the messages of closed turns, and the id of the last one."""
    messages: list[MessageDict] = []
    waiting: list[MessageDict] = []
    last: str | None = None
    for record in records:
        data = record.data
        if record.kind == _MESSAGE and isinstance(data, dict):
            waiting.append(data)
        elif record.kind == _TURN and isinstance(data, dict):
            count = data.get("messages")
            # More lines than the turn has are of a turn that did not get as far as its closing line.
            messages += waiting[max(0, len(waiting) - count) :] if isinstance(count, int) else waiting
            waiting = []
            last = str(data.get("turn_id"))
    return messages, last


async def _lines(turn_id: str, messages: Sequence[MessageDict], clean: Clean | None) -> list[Record]:
    now = round(time.time(), 3)
    written = messages
    if clean is not None:
        written = await to_thread.run_sync(lambda: [clean(message) for message in messages])
    return [
        *(Record(kind=_MESSAGE, data=message, at=now) for message in written),
        Record(kind=_TURN, data={"turn_id": turn_id, "messages": len(messages)}, at=now),
    ]


def _problem(record: Record) -> str | None:
    if record.kind not in (_MESSAGE, _TURN):
        return f"the kind {record.kind!r} is unknown"
    return None if isinstance(record.data, dict) else "it is no object"
