"""A session from the text that an export wrote, by whoever wrote it."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs
from anyio import to_thread

from amplifier.app.store import export
from amplifier.app.store.fork import with_turns
from amplifier.app.store.reader import turns_of
from amplifier.app.store.records import VERSION, SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession, read_record
from amplifier.app.store.transcript import TranscriptLine
from amplifier.kernel.budgets.expenses import Spending
from amplifier_kit.redaction import SinkRedactor, StrictRedactor, clean_message
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.history import repair
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = [
    "MAX_BYTES",
    "METADATA",
    "import_session",
    "is_transcript",
    "read_export",
    "read_transcript",
]

MAX_BYTES: Final = 64_000_000
"""How large a file may be."""

_TAKEN: Final = (
    "session_id",
    "created",
    "updated",
    "name",
    "tags",
    "prompt",
    "usage",
    "cost_usd",
    "spending",
)
"""What is believed of an imported record: nothing that decides what a session is made of."""

METADATA: Final = "metadata.json"


async def import_session(
    store: ProjectSessions, path: Path, *, working_dir: str = ""
) -> StoredSession:
    """Store the session that a file holds, under its own id, or a new one where that is taken.

    The file may be anybody's: secrets are taken out of all of it, its history is repaired, and neither a profile nor a
    plan nor a parent is taken from it.

    Args:
        store: where it is stored.
        path: what `amplifier session export` wrote as JSON, or a transcript of the original.
        working_dir: where the person works.

    Raises:
        ConfigError: the file is none, damaged, too large or a newer version's.
        OSError: the system refuses.
    """
    record, lines = await to_thread.run_sync(_read_clean, path)
    folder = store.folder(record.session_id)
    if await to_thread.run_sync(read_record, folder) is not None:
        record = attrs.evolve(record, session_id=str(uuid4()))
    messages = with_turns(repair([line.message for line in lines]).messages, lines)
    async with store.open(attrs.evolve(record, working_dir=working_dir)) as writer:
        await writer.transcript.put(messages)
        await writer.write(
            attrs.evolve(writer.record, turn_count=len(turns_of(messages)))
        )
        return StoredSession(folder=writer.folder, record=writer.record)


def _read_clean(path: Path) -> tuple[SessionRecord, list[TranscriptLine]]:
    """Read a file without the secrets in it, whichever part of it they stand in."""
    record, lines = read_export(path)
    redactor = SinkRedactor(StrictRedactor())
    turns: dict[str, str] = {}
    for line in lines:
        # The names of turns are text of the file, too, and appear in messages and
        # traces.
        is_clean = _is_clean(line.turn, redactor)
        name = line.turn if is_clean else f"turn-{len(turns) + 1}"
        turns.setdefault(line.turn, name)
    lines = [
        attrs.evolve(
            line, turn=turns[line.turn], message=clean_message(line.message, redactor)
        )
        for line in lines
    ]
    cleaned = attrs.evolve(
        record,
        tags=tuple(map(redactor.redact_text, record.tags)),
        prompt=redactor.redact_text(record.prompt),
        # Counted anew from what the spending says: the two must not differ.
        usage={},
    )
    if not _is_clean(record.session_id, redactor):
        cleaned = attrs.evolve(cleaned, session_id=str(uuid4()))
    if record.name is not None:
        cleaned = attrs.evolve(cleaned, name=redactor.redact_text(record.name))
    spent = Spending.from_dict(record.spending or record.spending_of_usage)
    return cleaned.with_spending(spent.to_dict()), lines


def _is_clean(text: str, redactor: SinkRedactor) -> bool:
    return redactor.redact_text(text) == text


def read_export(path: Path) -> tuple[SessionRecord, list[TranscriptLine]]:
    """Read what an export wrote as JSON.

    Raises:
        ConfigError: the file is none, damaged, too large or a newer version's.
        OSError: the file cannot be read.
    """
    subject = f"file {str(path)!r}"
    data = _read(path, subject)
    match data:
        case {"format": export.FORMAT, "version": int() as version} if (
            version > export.VERSION
        ):
            problem = (
                f"up to {export.VERSION} is understood; got {version}. Update amplifier"
            )
            raise _problem(subject, "version", problem)
        case {
            "format": export.FORMAT,
            "version": export.VERSION,
            "session": dict() as about,
            "messages": list() as messages,
        }:
            pass
        case _:
            raise _problem(
                subject,
                "",
                f"no exported session: an object with the format {export.FORMAT!r} is",
            )
    known: JSONValue = {
        "version": VERSION,
        **{key: about[key] for key in _TAKEN if key in about},
    }
    record = SessionRecord.from_dict(known, subject=subject)
    return record, [
        line
        for at, item in enumerate(messages)
        if (line := _line(at, item, subject)).message.get("role")
        not in ("system", "developer")
    ]


def _line(at: int, item: JSONValue, subject: str) -> TranscriptLine:
    match item:
        case {"turn": str() as turn, "message": dict() as message}:
            try:
                Message.from_dict(message)
            except ValueError as error:
                raise _problem(subject, f"messages[{at}]", str(error)) from error
            return TranscriptLine(at=at, turn=turn, message=message)
        case _:
            raise _problem(
                subject, f"messages[{at}]", "an object with the keys turn and message"
            )


def _read(path: Path, subject: str) -> JSONValue:
    if not path.is_file():
        raise _problem(subject, "", "it is not there, or no regular file")
    if path.stat().st_size > MAX_BYTES:
        raise _problem(subject, "", f"it is larger than {MAX_BYTES:,} bytes")
    if is_transcript(path):
        return read_transcript(path)
    try:
        data: JSONValue = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _problem(subject, "", f"it is no JSON: {error}") from error
    return data


def _problem(subject: str, place: str, message: str) -> ConfigError:
    return ConfigError.of(place, message, subject=subject)


def is_transcript(path: Path) -> bool:
    """Whether a file is named as the original's transcripts are."""
    return path.suffix == ".jsonl"


def read_transcript(path: Path) -> JSONObject:
    """Return what an export of the session would hold: each message of a person begins a turn.

    Raises:
        ConfigError: a line is no message.
        OSError: the file cannot be read.
    """
    messages: list[JSONValue] = []
    turn = 0
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        message = _message(line, path, number)
        if message.get("role") == "user" or turn == 0:
            turn += 1
        messages.append({"turn": f"turn-{turn}", "message": message})
    return {
        "format": export.FORMAT,
        "version": export.VERSION,
        "session": _about(path, messages),
        "messages": messages,
    }


def _message(line: bytes, path: Path, number: int) -> JSONObject:
    try:
        message: JSONValue = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad_line(path, number, f"it is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise _bad_line(path, number, "a message is an object")
    return message


def _bad_line(path: Path, number: int, message: str) -> ConfigError:
    return ConfigError.of(f"line {number}", message, subject=f"file {str(path)!r}")


def _about(path: Path, messages: list[JSONValue]) -> JSONObject:
    """Return what is known of the session, of which nothing decides what it is made of."""
    known = _metadata(path.with_name(METADATA))
    about: JSONObject = {"session_id": str(uuid4()), "prompt": _prompt(messages)}
    for key in ("session_id", "name"):
        value = known.get(key)
        if isinstance(value, str) and value:
            about[key] = value
    created = known.get("created")
    if isinstance(created, str):
        # else the time of the import stands in its place
        with suppress(ValueError):
            about["created"] = datetime.fromisoformat(created).timestamp()
    return about


def _metadata(path: Path) -> JSONObject:
    try:
        known: JSONValue = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _prompt(messages: list[JSONValue]) -> str:
    for item in messages:
        match item:
            case {"message": {"role": "user", "content": str() as text}}:
                return text[:120]
            case _:
                continue
    return ""
