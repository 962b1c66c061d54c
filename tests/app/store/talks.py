"""Sessions in a store, with something said in them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier_sdk.journal import CallStarted, MessageWritten, TurnStarted
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import MessageDict

__all__ = ["HELLO", "ROME", "calling", "interrupt", "keep", "record", "result"]

HELLO: list[MessageDict] = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
]
ROME: list[MessageDict] = [
    {"role": "developer", "content": "It is Monday."},
    {"role": "user", "content": "How is Rome?"},
    {"role": "assistant", "content": [{"type": "text", "text": "Rome is warm."}]},
]


def record(session_id: str = "s1", **changes: object) -> SessionRecord:
    return attrs.evolve(
        SessionRecord(session_id=session_id, working_dir="/work"),
        **changes,  # type: ignore[arg-type]  # the test's own fields
    )


def calling(*names: str, path: str = "/tmp/x") -> MessageDict:
    blocks: list[JSONObject] = [
        {
            "type": "tool_call",
            "id": f"c{number}",
            "name": name,
            "input": {"path": path},
        }
        for number, name in enumerate(names)
    ]
    return {"role": "assistant", "content": [*blocks]}


def result(number: int, name: str, text: str) -> MessageDict:
    return {"role": "tool", "tool_call_id": f"c{number}", "name": name, "content": text}


async def keep(
    store: ProjectSessions,
    session_id: str = "s1",
    turns: Sequence[Sequence[MessageDict]] = (),
    **fields: object,
) -> StoredSession:
    """Keep a session in which some turns were taken."""
    made = record(session_id, **fields)
    async with store.open(made) as writer:
        messages: list[MessageDict] = []
        for number, turn in enumerate(turns, 1):
            messages += turn
            await writer.journal.append(TurnStarted(turn_id=f"t{number}", prompt="?"))
            await writer.note_turn(messages)
        await writer.write(attrs.evolve(writer.record, updated=made.updated))
        return StoredSession(folder=writer.folder, record=writer.record)


async def interrupt(
    store: ProjectSessions,
    session: StoredSession,
    *,
    prompt: str = "Delete it",
    path: str = "/tmp/x",
) -> None:
    """Leave a turn as a process does that is killed while a tool runs."""
    async with store.open(session.record) as writer:
        await writer.journal.append(TurnStarted(turn_id="t9", prompt=prompt))
        await writer.journal.append(
            MessageWritten(turn_id="t9", message=calling("rm", "ls", path=path))
        )
        await writer.journal.append(
            CallStarted(turn_id="t9", call_id="c0", tool_name="rm")
        )
