"""What of a conversation stays in its file, and what goes to the archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from amplifier_kit.files.appendlog import AppendLogFile, Expected, encode_line
from amplifier_module_context_persistent._records import (
    EPOCH,
    MESSAGE,
    epoch,
    messages_of,
)
from amplifier_module_context_persistent._settings import Retention
from amplifier_sdk import Message, MessageDict, ToolCallBlock, ToolResultBlock
from amplifier_sdk.stores import LogEntry

__all__ = ["ARCHIVE_HOLDS", "Retained", "archive", "retain"]

ARCHIVE_HOLDS = "context-archive"
DAY = 86_400.0


@attrs.frozen(kw_only=True)
class Retained:
    """The records that stay, and those that go, both in their order."""

    stays: tuple[LogEntry, ...]
    retired: tuple[LogEntry, ...] = ()


@attrs.define(eq=False)
class _Turn:
    """Messages that stay or go together."""

    records: list[LogEntry]

    @property
    def ended(self) -> float:
        return max(record.at for record in self.records)

    @property
    def bytes(self) -> int:
        return sum(len(encode_line(record)) + 1 for record in self.records)


def retain(records: Sequence[LogEntry], retention: Retention, now: float) -> Retained:
    """Decide what stays.

    Args:
        records: the whole file's.
        retention: the rules.
        now: seconds since the epoch.
    """
    begins = max(
        (index for index, record in enumerate(records) if record.kind == EPOCH),
        default=0,
    )
    past, present = list(records[:begins]), list(records[begins:])
    turns = [_Turn(part) for part in _turns(list(_single(present)))]
    over = _Excess(retention, now, past, turns)
    past_goes = bool(past) and over.past()
    going: list[_Turn] = []
    while len(turns) > 1 and over.turn(turns[0]):
        going.append(turns.pop(0))
    if not going:
        if past_goes:
            return Retained(stays=tuple(present), retired=tuple(past))
        return Retained(stays=tuple(records))
    gone = [record for turn in going for record in turn.records]
    staying = [record for record in gone if _role(record) in retention.keep_roles]
    retired = [record for record in gone if _role(record) not in retention.keep_roles]
    if not retired:
        return Retained(stays=tuple(records))
    begin = LogEntry(kind=EPOCH, data=epoch("retired", (), count=len(retired)), at=now)
    rest = [record for turn in turns for record in turn.records]
    return Retained(stays=(begin, *staying, *rest), retired=(*past, *retired))


@attrs.define(eq=False)
class _Excess:
    """How much there is more than the rules allow; it shrinks as turns go."""

    rules: Retention
    now: float
    _past: list[LogEntry]
    _turns: list[_Turn]
    _messages: int = 0
    _bytes: int = 0

    def __attrs_post_init__(self) -> None:
        self._messages = sum(len(turn.records) for turn in self._turns)
        if self.rules.max_bytes is not None:
            self._bytes = sum(turn.bytes for turn in (*self._turns, _Turn(self._past)))

    def past(self) -> bool:
        """Tell whether what is no longer read goes."""
        rules, past = self.rules, _Turn(self._past)
        goes = self._is_old(past) or (
            rules.max_bytes is not None and self._bytes > rules.max_bytes
        )
        self._bytes -= past.bytes if goes else 0
        return goes

    def turn(self, turn: _Turn) -> bool:
        """Tell whether the oldest turn goes, and go on without it."""
        rules = self.rules
        goes = (
            self._is_old(turn)
            or (rules.max_messages is not None and self._messages > rules.max_messages)
            or (rules.max_bytes is not None and self._bytes > rules.max_bytes)
        )
        going = [
            record for record in turn.records if _role(record) not in rules.keep_roles
        ]
        self._messages -= len(going)
        self._bytes -= _Turn(going).bytes if rules.max_bytes is not None else 0
        return goes

    def _is_old(self, turn: _Turn) -> bool:
        age = self.rules.max_age_days
        return age is not None and turn.ended < self.now - age * DAY


def archive(path: Path, records: Sequence[LogEntry]) -> None:
    """Add records to an archive and have them on the disk; this blocks.

    Raises:
        OSError: the system refuses.
        LogFormatError: the file is no archive.
    """
    file = AppendLogFile.open(path, Expected(holds=ARCHIVE_HOLDS))
    try:
        for record in records:
            file.append(encode_line(record))
    finally:
        file.close()


def _single(records: Sequence[LogEntry]) -> Iterator[LogEntry]:
    """Yield one record for each message."""
    for record in records:
        for message in messages_of(record):
            yield LogEntry(kind=MESSAGE, data=message, at=record.at)


def _turns(records: Sequence[LogEntry]) -> list[list[LogEntry]]:
    """Split a history where a person speaks and no call waits for its result."""
    turns: list[list[LogEntry]] = []
    waiting: set[str] = set()
    for record in records:
        (message,) = messages_of(record)
        if not turns or (not waiting and _is_prompt(message)):
            turns.append([])
        turns[-1].append(record)
        calls, answers = _links(message)
        waiting = (waiting | calls) - answers
    return turns


def _is_prompt(message: MessageDict) -> bool:
    metadata = message.get("metadata")
    injected = isinstance(metadata, dict) and metadata.get("source") == "hook"
    return message.get("role") == "user" and not injected


def _links(message: MessageDict) -> tuple[set[str], set[str]]:
    """Return the ids of the calls that a message makes, and of those that it answers."""
    try:
        typed = Message.from_dict(message)
    except ValueError:  # a role or a content that nobody knows makes no calls
        return set(), set()
    calls = {block.id for block in typed.blocks if isinstance(block, ToolCallBlock)}
    answers = {
        block.tool_call_id
        for block in typed.blocks
        if isinstance(block, ToolResultBlock)
    }
    return calls, answers | ({typed.tool_call_id} if typed.tool_call_id else set())


def _role(record: LogEntry) -> str:
    (message,) = messages_of(record)
    return str(message["role"])
