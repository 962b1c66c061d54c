"""A new session that continues from a point of a stored one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs
from anyio import to_thread

from amplifier.app.store.lineage import find_recorded
from amplifier.app.store.reader import StoredHistory, read_history, turns_of
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier.app.store.transcript import TranscriptLine
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.history import repair
from amplifier_sdk.messages import MessageDict

__all__ = ["fork_session", "with_turns"]

_SETTINGS: Final = "settings.yaml"


async def fork_session(
    store: ProjectSessions,
    session: StoredSession,
    *,
    at_turn: int | None = None,
    at_message: int | None = None,
    name: str | None = None,
) -> StoredSession:
    """Make a session whose history is that of another one, or its beginning; the other one stays as it is.

    A call that the cut leaves without its result is answered as in a repaired history. The settings of the session
    go along, and what it was made of; what was spent does not.

    Args:
        store: where the new one is stored.
        session: the other one; it may be open.
        at_turn: how many turns go along; default all.
        at_message: how many messages go along instead.
        name: what the person calls the new one.

    Raises:
        ConfigError: both are given, or there are not so many; or a file of the session is not understood.
        OSError: the system refuses.
    """
    # Read without its lock, since the session may be open: a line that is half written
    # is not part of it.
    history = await to_thread.run_sync(read_history, session.folder)
    recorded = await to_thread.run_sync(find_recorded, store, session.record)
    lines = _beginning(history, at_turn, at_message)
    old = session.record
    record = SessionRecord(
        session_id=str(uuid4()),
        working_dir=old.working_dir,
        profile=old.profile,
        provider=old.provider,
        model=old.model,
        name=name,
        tags=old.tags,
        prompt=old.prompt,
        forked_from={
            "session_id": old.session_id,
            "turns": len(turns_of(lines)),
            "messages": len(lines),
        },
    )
    async with store.open(record) as writer:
        mended = repair([line.message for line in lines]).messages
        messages = with_turns(mended, lines)
        await writer.transcript.put(messages)
        await writer.write(
            attrs.evolve(
                record, turn_count=len(turns_of(messages)), updated=record.created
            )
        )
        if recorded is not None:
            await writer.record_composition(
                recorded, provider=old.provider, model=old.model
            )
        await to_thread.run_sync(_copy_settings, session.folder, writer.folder)
        return StoredSession(folder=writer.folder, record=writer.record)


def with_turns(
    messages: Sequence[MessageDict], lines: Sequence[TranscriptLine]
) -> list[TranscriptLine]:
    """Say to which turns the messages of a repaired history belong: those that were put in, to that before them."""
    turns = {id(line.message): line.turn for line in lines}
    turn = ""
    if lines:
        turn = lines[0].turn
    result: list[TranscriptLine] = []
    for at, message in enumerate(messages):
        turn = turns.get(id(message), turn)
        result.append(TranscriptLine(at=at, turn=turn, message=message))
    return result


def _beginning(
    history: StoredHistory, at_turn: int | None, at_message: int | None
) -> Sequence[TranscriptLine]:
    if at_turn is not None and at_message is not None:
        raise ConfigError.of(
            "", "a turn or a message; both were given", subject="point of a fork"
        )
    if at_message is not None:
        _require("messages", at_message, len(history.lines))
        return history.lines[:at_message]
    turns = history.turns
    if at_turn is not None:
        _require("turns", at_turn, len(turns))
        turns = turns[:at_turn]
    return [line for turn in turns for line in turn]


def _require(what: str, wanted: int, there: int) -> None:
    if not 0 <= wanted <= there:
        raise ConfigError.of(
            str(wanted), f"the session has {there} {what}", subject="point of a fork"
        )


def _copy_settings(source: Path, target: Path) -> None:
    settings = source / _SETTINGS
    if settings.is_file() and not settings.is_symlink():
        # Made for this user alone before it holds anything.
        (target / _SETTINGS).touch(mode=0o600)
        (target / _SETTINGS).write_bytes(settings.read_bytes())
