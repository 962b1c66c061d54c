"""Sessions of a store of several machines are opened as files are: leased, copied, and brought back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import anyio
import attrs
import pytest

from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.leases import LeaseState
from amplifier.app.store.shared import SharedSessions
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.errors import LeaseHeldError, LeaseLostError, StoreUnavailableError
from amplifier_sdk.journal import CallStarted, TurnStarted
from amplifier_sdk.stores import Lease, LogName, SessionStore, StoredQuestion
from tests.app.store.talks import HELLO, ROME, interrupt, keep, record

QUESTION: Final = StoredQuestion(
    question_id="q1", session_id="s1", prompt="?", options=("yes",)
)


@pytest.fixture
def remote(tmp_path: Path) -> FileSessionStore:
    return FileSessionStore(ProjectSessions(tmp_path / "remote"))


def machine(remote: SessionStore) -> SharedSessions:
    async def opener() -> SessionStore:
        return remote

    return SharedSessions.of_store(opener, Path(os.devnull))


async def test_a_session_is_resumed_by_another_machine(
    remote: FileSessionStore, store: ProjectSessions
) -> None:
    first, second = machine(remote), machine(remote)
    await keep(first, turns=[HELLO])
    async with second.open(record()) as writer:
        messages = [*writer.messages, *ROME]
        await writer.journal.append(TurnStarted(turn_id="t2", prompt="?"))
        await writer.note_turn(messages)
    await keep(store, turns=[HELLO, ROME])
    log = await remote.read_log("s1", "transcript")
    known = await FileSessionStore(store).read_log("s1", "transcript")

    assert writer.record.turn_count == 2
    # the very entries that files have of the same talk, but for the times
    assert [(one.kind, one.data) for one in log.entries] == [
        (one.kind, one.data) for one in known.entries
    ]
    assert (await remote.read_log("s1", "journal")).entries == ()
    assert await remote.holder("s1") is None


async def test_a_record_of_the_journal_stands_in_the_store_at_once(
    remote: FileSessionStore,
) -> None:
    async with machine(remote).open(record()) as writer:
        await writer.journal.append(TurnStarted(turn_id="t1", prompt="Delete it"))
        await writer.journal.append(
            CallStarted(turn_id="t1", call_id="c0", tool_name="rm")
        )
        stored = await remote.read_log("s1", "journal")
        known = await remote.read_record("s1")

    assert [entry.kind for entry in stored.entries] == ["turn_started", "call_started"]
    assert known is not None


async def test_what_a_killed_machine_did_is_known_to_the_next(
    remote: FileSessionStore,
) -> None:
    await interrupt(machine(remote), await keep(machine(remote), turns=[HELLO]))
    async with machine(remote).open(record()) as writer:
        turn = writer.interrupted

    assert turn is not None
    assert turn.in_doubt == ("rm",)


async def test_one_machine_at_a_time_has_a_session(remote: FileSessionStore) -> None:
    async with machine(remote).open(record()):
        with pytest.raises(LeaseHeldError, match="amplifier"):
            async with machine(remote).open(record()):
                pass


async def test_a_machine_that_lost_its_lease_writes_nothing(
    remote: FileSessionStore,
) -> None:
    await keep(machine(remote), turns=[HELLO])
    with pytest.raises(LeaseLostError):
        async with machine(remote).open(record()) as late:
            expire(remote)
            taken = await remote.acquire("s1", owner="worker 2", period=60)
            before = await remote.read_record("s1")
            await late.write(attrs.evolve(late.record, name="late"))
            await late.journal.append(TurnStarted(turn_id="t2", prompt="?"))

    assert await remote.read_record("s1") == before
    assert (await remote.read_log("s1", "journal")).entries == ()
    await remote.renew(taken)


def expire(remote: FileSessionStore) -> None:
    folder = remote.files.folder("s1")
    attrs.evolve(LeaseState.read(folder), expires=0.0).write(folder)


class _Gone(FileSessionStore):
    """A store whose server is gone once a turn has begun."""

    async def append(self, lease: Lease, log: LogName, entries: object) -> None:
        raise StoreUnavailableError("the server went away")


async def test_without_the_store_nothing_is_done(remote: FileSessionStore) -> None:
    gone = _Gone(remote.files)
    with pytest.raises(StoreUnavailableError, match="went away"):
        async with machine(gone).open(record(name="trip")) as writer:
            await writer.journal.append(TurnStarted(turn_id="t1", prompt="?"))

    assert await remote.holder("s1") is None


async def test_children_and_questions_go_along(remote: FileSessionStore) -> None:
    own = machine(remote)
    async with own.open(record(name="trip")):
        await keep(own, "s1-kid", [HELLO], parent_id="s1", plan={"tools": []})
        await FileSessionStore(ProjectSessions(own.root)).questions("s1")
    lease = await remote.acquire("s1", owner="worker", period=60)
    await remote.ask(lease, QUESTION)
    await remote.release(lease)
    await remote.answer("q1", "yes", by="ann")
    other = machine(remote)
    async with other.open(record()):
        (asked,) = await FileSessionStore(ProjectSessions(other.root)).questions("s1")

    assert await remote.children("s1") == ("s1-kid",)
    assert (asked.answer, asked.answered_by) == ("yes", "ann")
    assert other.folder("s1-kid").is_dir()


async def test_what_a_server_noted_of_its_turns_stays(remote: FileSessionStore) -> None:
    lease = await remote.acquire("s1", owner="server", period=60)
    known = {**record(name="trip").to_dict(), "served_turns": [{"turn_id": "t"}]}
    await remote.write_record(lease, known)
    await remote.release(lease)
    await keep(machine(remote), turns=[HELLO])
    after = await remote.read_record("s1")

    assert after is not None
    assert after["served_turns"] == [{"turn_id": "t"}]
    assert after["turn_count"] == 1


async def test_an_unused_session_is_no_session(remote: FileSessionStore) -> None:
    async with machine(remote).open(record()):
        pass

    assert await remote.list_sessions(limit=9) == ()


async def test_the_lease_is_renewed_while_nothing_happens(
    remote: FileSessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.app.store.shared._PERIOD", 3.0)
    async with machine(remote).open(record()):
        first = LeaseState.read(remote.files.folder("s1")).expires
        with anyio.fail_after(20):
            while LeaseState.read(remote.files.folder("s1")).expires == first:
                await anyio.lowlevel.checkpoint()
