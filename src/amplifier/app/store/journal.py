"""What a turn is doing, written before it does it, so that a turn that was killed is told truly afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Self

import attrs
from anyio import to_thread

from amplifier_sdk.convert import to_json
from amplifier_sdk.history import OpenCall, open_calls, tool_message
from amplifier_sdk.journal import (
    CallFinished,
    CallStarted,
    JournalRecord,
    MessageWritten,
    TurnEnded,
    TurnStarted,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.kit.appendlog import AppendLog, Durability, Record
from amplifier_sdk.messages import MessageDict

__all__ = ["FileJournal", "InterruptedTurn", "read_interrupted"]

_HOLDS: Final = "journal"
_KINDS: Final[Mapping[type[JournalRecord], str]] = {
    TurnStarted: "turn_started",
    MessageWritten: "message",
    CallStarted: "call_started",
    CallFinished: "call_finished",
    TurnEnded: "turn_ended",
}
_IN_DOUBT: Final = (
    "This call was started and then the program ended. Whether it had its effect is not known. It is not run again by"
    " itself: find out how things are before you repeat it."
)
_NOT_STARTED: Final = "This call was not started: the program ended before."


@attrs.frozen(kw_only=True)
class InterruptedTurn:
    """A turn that was running when the program ended.

    Args:
        turn_id: the turn.
        prompt: what was asked.
        messages: the prompt, what the model said, and a result for every call.
        in_doubt: the tools of calls that were started and whose end is not known.
        not_started: the tools of calls that were not started.
    """

    turn_id: str
    prompt: str
    messages: tuple[MessageDict, ...]
    in_doubt: tuple[str, ...] = ()
    not_started: tuple[str, ...] = ()


@attrs.define(eq=False)
class FileJournal:
    """The journal of a session, the capability `session.journal`; it holds the latest turn alone.

    `interrupted` is the turn that it told when it was opened, `turn_id` the one that it tells now.
    """

    _log: AppendLog
    interrupted: InterruptedTurn | None
    turn_id: str | None = None
    _clean: Callable[[JSONObject], JSONObject] | None = None

    @classmethod
    async def open(cls, path: Path, durability: Durability = "written") -> Self:
        """Open the file of a session, or begin one.

        Raises:
            LockedError: somebody else writes it.
            LogFormatError: it is something else, or a newer version's.
            OSError: the system refuses.
        """
        log = await AppendLog.open(path, holds=_HOLDS, durability=durability)
        return cls(log, read_interrupted(log.take()))

    def clean_with(self, clean: Callable[[JSONObject], JSONObject] | None) -> None:
        """Say what returns the data that the file gets in a record's place."""
        self._clean = clean

    async def append(self, record: JournalRecord) -> None:
        """Store one record.

        Raises:
            OSError: it was not stored; the turn stops.
        """
        data = to_json(record)
        written: JSONValue = None
        if self._clean is not None and isinstance(data, dict):
            written = await to_thread.run_sync(self._clean, data)
        await self._log.append(_KINDS[type(record)], data, written=None if written == data else written)
        self._log.take()
        self.turn_id = record.turn_id

    async def begin_anew(self) -> None:
        """Forget the turn, which is in the transcript.

        Raises:
            OSError: the system refuses; the journal is as it was, and does no harm.
        """
        self.interrupted = None
        await self._log.replace(())

    async def aclose(self) -> None:
        """Close the file."""
        await self._log.aclose()


def read_interrupted(records: Iterable[Record]) -> InterruptedTurn | None:
    """Return the last turn of a journal as a history would have it; `None` for an empty journal.

    Every call gets a result: the one it had, or a text that says whether it may have had its effect.
    """
    turn: _Turn | None = None
    for record in records:
        data = record.data
        if not isinstance(data, dict):
            continue
        if record.kind == "turn_started":
            turn = _Turn(str(data.get("turn_id")), str(data.get("prompt")))
        elif turn is not None:
            turn.add(record.kind, data)
    return None if turn is None else turn.close()


@attrs.define(eq=False)
class _Turn:
    """A turn being told from its records."""

    turn_id: str
    prompt: str
    messages: list[MessageDict] = attrs.field(factory=list)
    started: set[str] = attrs.field(factory=set)
    results: dict[str, str] = attrs.field(factory=dict)
    in_doubt: list[str] = attrs.field(factory=list)
    not_started: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.messages.append({"role": "user", "content": self.prompt})

    def add(self, kind: str, data: Mapping[str, JSONValue]) -> None:
        call = str(data.get("call_id"))
        message = data.get("message")
        if kind == "message" and isinstance(message, dict):
            self._answer()
            self.messages.append(message)
        elif kind == "call_started":
            self.started.add(call)
        elif kind == "call_finished":
            self.results[call] = str(data.get("output"))

    def close(self) -> InterruptedTurn:
        self._answer()
        return InterruptedTurn(
            turn_id=self.turn_id,
            prompt=self.prompt,
            messages=tuple(self.messages),
            in_doubt=tuple(self.in_doubt),
            not_started=tuple(self.not_started),
        )

    def _answer(self) -> None:
        """Give each call of the last message its result."""
        for call in open_calls(self.messages):
            self.messages.append(tool_message(call.id, call.name, self._result(call)))

    def _result(self, call: OpenCall) -> str:
        if call.id in self.results:
            return self.results[call.id]
        if call.id in self.started:
            self.in_doubt.append(call.name)
            return _IN_DOUBT
        self.not_started.append(call.name)
        return _NOT_STARTED
