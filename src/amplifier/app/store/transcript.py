"""What was said in a session: one line a message, closed by one line a turn.

A line says which place of the history it is and to which turn it belongs, so that lines that are written again take
the place of what was there, and a damaged line costs its own message alone. Lines behind the last closing line are
those of a turn that was being stored when the process ended; where the journal has that turn, it is more complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Self, TypeAlias

import attrs
from anyio import to_thread

from amplifier.app.store.journal import REMEDY
from amplifier_kit.files.appendlog import (
    AppendLog,
    Damage,
    Durability,
    Expected,
)
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.stores import LogEntry

__all__ = [
    "EXPECTED",
    "Clean",
    "Transcript",
    "TranscriptLine",
    "place_behind",
    "read_lines",
]

_MESSAGE: Final = "message"
_TURN: Final = "turn"

Clean: TypeAlias = Callable[[MessageDict], MessageDict]
"""Returns what the file gets in a message's place."""


@attrs.frozen(kw_only=True)
class TranscriptLine:
    """A message as it stands in the file.

    Args:
        at: its place in the history, from 0; a damaged line leaves a gap.
        turn: the turn in which it was said.
        message: the message.
        is_closed: whether the turn was stored to its end.
    """

    at: int
    turn: str
    message: MessageDict
    is_closed: bool = False


@attrs.define(eq=False)
class Transcript:
    """The messages of a session but for its system message, which is built anew each time it is opened."""

    _log: AppendLog
    lines: list[TranscriptLine]
    last_turn: str | None

    @classmethod
    async def open(cls, path: Path, durability: Durability = "written") -> Self:
        """Open the file of a session, or begin one.

        Raises:
            LockedError: somebody else writes it.
            LogFormatError: it is something else, or a newer version's.
            OSError: the system refuses.
        """
        log = await AppendLog.open(path, holds=EXPECTED, durability=durability)
        return cls(log, *read_lines(log.take()))

    @property
    def messages(self) -> list[MessageDict]:
        """The history, without system messages."""
        return [line.message for line in self.lines]

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read."""
        return self._log.damage

    def forget(self, turns: Iterable[str]) -> None:
        """Leave out what stands there of turns that were not stored to their end; the file has it still."""
        left_out = frozenset(turns)
        self.lines = [
            line for line in self.lines if line.is_closed or line.turn not in left_out
        ]

    async def store(
        self, turn_id: str, messages: Sequence[MessageDict], clean: Clean | None = None
    ) -> None:
        """Store how a turn left the history; only what is new is written, unless it is another history.

        Args:
            turn_id: the turn.
            messages: the whole history, without system messages.
            clean: returns what the file gets in a message's place.

        Raises:
            OSError: it was not stored; what was stored before stays.
        """
        known = _common(self.messages, messages)
        is_longer = known == len(self.lines)
        lines = self.lines
        if not is_longer:
            lines = [attrs.evolve(line, at=at) for at, line in enumerate(lines[:known])]
        first = place_behind(lines)
        new = [
            TranscriptLine(
                at=first + offset, turn=turn_id, message=message, is_closed=True
            )
            for offset, message in enumerate(messages[known:])
        ]
        if is_longer:
            for record in await _records(turn_id, new, clean):
                await self._log.append(record.kind, record.data)
            self._log.take()
        else:
            # A history that changed before its end cannot be appended to: it is replaced at once.
            await self._log.replace(await _records(turn_id, [*lines, *new], clean))
        # The journal is cleared after this: until then it has the only safe copy.
        await self._log.sync()
        self.lines = [*lines, *new]
        self.last_turn = turn_id

    async def put(
        self, lines: Sequence[TranscriptLine], clean: Clean | None = None
    ) -> None:
        """Put other messages, each with its turn, in the place of all that there are.

        Raises:
            OSError: it was not stored; the old ones stay.
        """
        numbered = [
            attrs.evolve(line, at=at, is_closed=True) for at, line in enumerate(lines)
        ]
        last_turn = ""
        if numbered:
            last_turn = numbered[-1].turn
        await self._log.replace(await _records(last_turn, numbered, clean))
        self.lines, self.last_turn = numbered, last_turn

    async def aclose(self) -> None:
        """Close the file."""
        await self._log.aclose()


def place_behind(lines: Sequence[TranscriptLine]) -> int:
    """Return the place in the history of what follows some lines."""
    if lines:
        return lines[-1].at + 1
    return 0


def read_lines(
    records: Iterable[LogEntry],
) -> tuple[list[TranscriptLine], str | None]:
    """Return the messages that a file holds, and the last turn that was stored to its end."""
    lines: list[TranscriptLine] = []
    last: str | None = None
    for record in records:
        match record.data:
            case {
                "at": int() as at,
                "turn": str() as turn,
                "message": dict() as message,
            }:
                # A turn that was stored twice begins again at its place: the later copy counts.
                while lines and lines[-1].at >= at:
                    lines.pop()
                lines.append(TranscriptLine(at=at, turn=turn, message=message))
            case {"turn_id": str() as last}:
                _close(lines)
            case _:  # the log lets no other record through
                pass
    return lines, last


def _close(lines: list[TranscriptLine]) -> None:
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].is_closed:
            return
        lines[index] = attrs.evolve(lines[index], is_closed=True)


def _common(known: Sequence[MessageDict], messages: Sequence[MessageDict]) -> int:
    """Return how many messages the two begin with alike."""
    # The usual case, compared without a step of Python for each message.
    if list(messages[: len(known)]) == known:
        return len(known)
    pairs = zip(known, messages, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other),
        min(len(known), len(messages)),
    )


async def _records(
    turn_id: str, lines: Sequence[TranscriptLine], clean: Clean | None
) -> list[LogEntry]:
    now = round(time.time(), 3)
    written = [line.message for line in lines]
    if clean is not None and lines:
        written = await to_thread.run_sync(
            lambda: [clean(line.message) for line in lines]
        )
    return [
        *(
            LogEntry(
                kind=_MESSAGE,
                data={"at": line.at, "turn": line.turn, "message": message},
                at=now,
            )
            for line, message in zip(lines, written, strict=True)
        ),
        LogEntry(kind=_TURN, data={"turn_id": turn_id}, at=now),
    ]


def _problem(record: LogEntry) -> str | None:
    match record.kind, record.data:
        case ("message", {"at": int(), "turn": str(), "message": dict()}) | (
            "turn",
            {"turn_id": str()},
        ):
            return None
        case _:
            return "it is neither a message nor the end of a turn"


EXPECTED: Final = Expected(holds="transcript", check=_problem, remedy=REMEDY)
"""What such a file is opened for."""
