"""What was said in a stored session, read while whoever has it open goes on writing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.store.interrupted import InterruptedTurn, join_turns, read_turns
from amplifier.app.store.journal import EXPECTED as JOURNAL_LOG
from amplifier.app.store.transcript import (
    EXPECTED,
    TranscriptLine,
    place_behind,
    read_lines,
)
from amplifier.app.store.writer import JOURNAL, TRANSCRIPT, unrecorded
from amplifier_kit.files.appendlog import (
    Damage,
    Expected,
    LogContent,
    LogFormatError,
    read_log,
)
from amplifier_kit.open_data import as_list
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

__all__ = [
    "StoredHistory",
    "conversation",
    "interrupted_turn",
    "read_history",
    "read_journal",
    "turns_of",
    "words_of",
]

_SAID: Final = ("user", "assistant", "tool")


@attrs.frozen(kw_only=True)
class StoredHistory:
    """What was said in a session.

    Args:
        lines: the messages in their order, system messages left out, each with its turn.
        interrupted: the turn that was running when the program ended, or runs now; its messages are in `lines`.
        damage: what could not be read, by the name of its file.
    """

    lines: tuple[TranscriptLine, ...] = ()
    interrupted: InterruptedTurn | None = None
    damage: tuple[tuple[str, Damage], ...] = ()

    @property
    def messages(self) -> list[MessageDict]:
        """The messages alone."""
        return [line.message for line in self.lines]

    def problems(self, *, is_open: bool = False) -> tuple[tuple[str, str], ...]:
        """Say what could not be read, by the name of its file.

        Args:
            is_open: a process has the session, and a line may be half written.
        """
        return tuple(
            (file, f"line {piece.line}: {piece.reason}")
            for file, piece in self.damage
            if not (is_open and piece.is_tail)
        )

    @property
    def turns(self) -> list[Sequence[TranscriptLine]]:
        """The messages by turns."""
        return turns_of(self.lines)


def turns_of(lines: Iterable[TranscriptLine]) -> list[Sequence[TranscriptLine]]:
    """Part messages into turns; what a history began with before any turn counts to its first one."""
    turns: list[list[TranscriptLine]] = []
    for line in lines:
        if not turns or turns[-1][-1].turn not in ("", line.turn):
            turns.append([])
        turns[-1].append(line)
    return [*turns]


def read_history(folder: Path) -> StoredHistory:
    """Read what was said in the session of a folder; nothing is locked or mended. It blocks: call it in a thread.

    Raises:
        ConfigError: a file of it is none that is understood.
        OSError: the system refuses.
    """
    journal = read_journal(folder)
    transcript = _read(folder, TRANSCRIPT, EXPECTED)
    lines, last_turn = read_lines(transcript.records)
    turns = unrecorded(read_turns(journal.records), last_turn)
    recorded = {turn.turn_id for turn in turns}
    # A turn that was being moved when the program ended stands in both files: the
    # journal's copy counts, since it is complete.
    retained = [line for line in lines if line.is_closed or line.turn not in recorded]
    running = [(turn.turn_id, message) for turn in turns for message in turn.messages]
    retained += [
        TranscriptLine(at=at, turn=turn, message=said)
        for at, (turn, said) in enumerate(running, place_behind(retained))
    ]
    return StoredHistory(
        lines=tuple(retained),
        interrupted=join_turns(turns),
        damage=(
            *((JOURNAL, piece) for piece in journal.damage),
            *((TRANSCRIPT, piece) for piece in transcript.damage),
        ),
    )


def interrupted_turn(folder: Path) -> InterruptedTurn | None:
    """Return the turn of the session of a folder that runs or was interrupted, as in its history; `None` for none.

    Where there is none, the transcript is not read. It blocks: call it in a thread.

    Raises:
        ConfigError: a file of it is none that is understood.
        OSError: the system refuses.
    """
    # Mostly empty, and small: most sessions are decided by it alone.
    if read_turns(read_journal(folder).records):
        return read_history(folder).interrupted
    return None


def read_journal(folder: Path) -> LogContent:
    """Return what the journal of the session of a folder holds. It blocks: call it in a thread.

    Raises:
        ConfigError: it is none that is understood.
        OSError: the system refuses.
    """
    return _read(folder, JOURNAL, JOURNAL_LOG)


def conversation(messages: Iterable[MessageDict]) -> list[MessageDict]:
    """Leave out what neither the person, the model nor a tool said: instructions and what modules put in."""
    return [message for message in messages if message.get("role") in _SAID]


def words_of(message: MessageDict) -> str:
    """Return what a message says as text: its texts, its calls with their arguments, its results."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, map(_words, as_list(content))))


def _read(folder: Path, name: str, expected: Expected) -> LogContent:
    try:
        return read_log(folder / name, expected)
    except LogFormatError as error:
        raise ConfigError.of(
            "", str(error), subject=f"session {str(folder)!r}"
        ) from error


def _words(block: JSONValue) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return ""
    match block:
        case {"type": "text", "text": str() as text}:
            return text
        case {"type": "tool_call", "name": str() as name}:
            return f"{name} {_written(block.get('input'))}"
        case {"type": "tool_result", "output": output}:
            if isinstance(output, str):
                return output
            return _written(output)
        case {"type": "document", "source": {"type": "text", "data": str() as text}}:
            return f"{_named(block)}\n{text}"
        case {"type": "image" | "audio" | "document" | "video"}:
            return _named(block)
        case _:
            return ""


def _named(block: Mapping[str, JSONValue]) -> str:
    """Return what stands for media: the kind and the name, never the data."""
    match block.get("source"):
        case {"name": str() as name}:
            return f"[{block['type']} {name}]"
        case _:
            return f"[{block['type']}]"


def _written(value: JSONValue) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
