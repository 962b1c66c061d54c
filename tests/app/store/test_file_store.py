"""The files of sessions behind the protocol of stores: the suite of stores, and what only files have."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Timer

import anyio
import attrs
import pytest

from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.leases import LEASE, LeaseState
from amplifier.app.store.states import holder_of, state_of
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored_questions import QUESTIONS
from amplifier.app.store.writer import JOURNAL
from amplifier.testing.stores import (
    MeteredStoreTests,
    SessionStoreTests,
    StoreSubject,
)
from amplifier_kit.files.appendlog import encode_line
from amplifier_kit.files.locks import LOCK_TIMEOUT, WriterLock
from amplifier_sdk.errors import ConfigError, LeaseHeldError, LeaseLostError
from amplifier_sdk.journal import TurnStarted
from amplifier_sdk.stores import LogEntry, SessionStore, StoredQuestion
from tests.app.store.expiry import expire
from tests.app.store.talks import HELLO, record

ENTRY = LogEntry(kind="note", data={"text": "x"}, at=1000.5)
ENTRY_LINE = encode_line(LogEntry(kind="note", data={"text": "x"}, at=1000.5))


@attrs.frozen
class _Files:
    """The sessions below a folder, as the subject of the suite."""

    root: Path

    async def open(self) -> SessionStore:
        return FileSessionStore(ProjectSessions(self.root))

    async def expire_leases(self) -> None:
        expire(self.root)


class TestFileStore(SessionStoreTests, MeteredStoreTests):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> StoreSubject:
        return _Files(tmp_path)


@pytest.fixture
def leased(store: ProjectSessions) -> FileSessionStore:
    return FileSessionStore(store)


async def test_writer_waits_for_a_step_of_somebody_else(
    store: ProjectSessions, leased: FileSessionStore
) -> None:
    """As on a machine that stalls: whoever looks for the lease has its lock for longer than usual."""
    lease = await leased.acquire("s1", owner="worker 1", period=60)
    await leased.write_record(lease, record().to_dict())
    question = StoredQuestion(
        question_id="q1", session_id="s1", prompt="Go?", options=("yes",)
    )
    await leased.ask(lease, question)
    locks = [
        WriterLock.take(store.folder("s1") / name) for name in (JOURNAL, QUESTIONS)
    ]
    timers = [Timer(LOCK_TIMEOUT * 1.3, lock.release) for lock in locks]
    for timer in timers:
        timer.start()
    async with anyio.create_task_group() as group:
        group.start_soon(leased.append, lease, "events", [ENTRY])
        group.start_soon(partial(leased.answer, "q1", "yes", by="olga"))
    for timer in timers:
        timer.join()

    assert (await leased.read_log("s1", "events")).entries == (ENTRY,)
    assert (await leased.questions("s1"))[0].answer == "yes"


async def test_nobody_opens_a_session_that_is_leased(
    store: ProjectSessions, leased: FileSessionStore
) -> None:
    lease = await leased.acquire("s1", owner="worker 1", period=60)
    await leased.write_record(lease, record().to_dict())
    folder = store.folder("s1")

    assert (state_of(folder), holder_of(folder)) == ("open", "worker 1")
    with pytest.raises(LeaseHeldError, match="written by worker 1"):
        async with store.open(record()):
            pass
    with pytest.raises(LeaseHeldError):
        store.delete("s1")
    await leased.release(lease)
    assert (state_of(folder), holder_of(folder)) == ("idle", None)
    async with store.open(record()) as stored:
        assert stored.record.session_id == "s1"


async def test_nobody_leases_a_session_that_is_open(
    store: ProjectSessions, leased: FileSessionStore
) -> None:
    async with store.open(record()):
        with pytest.raises(LeaseHeldError, match="this process itself"):
            await leased.acquire("s1", owner="worker 1", period=60)
        with pytest.raises(LeaseHeldError):
            await leased.delete("s1")


async def test_a_lease_that_ended_does_not_write_into_an_open_session(
    store: ProjectSessions, leased: FileSessionStore
) -> None:
    lease = await leased.acquire("s1", owner="worker 1", period=60)
    await leased.write_record(lease, record().to_dict())
    LeaseState(owner="worker 1", token=lease.token, expires=1.0).write(
        store.folder("s1")
    )

    async with store.open(record()):
        with pytest.raises(LeaseLostError):
            await leased.append(lease, "journal", [ENTRY])
    assert (await leased.read_log("s1", "journal")).entries == ()


async def test_what_a_session_said_is_read_without_opening_it(
    store: ProjectSessions, leased: FileSessionStore
) -> None:
    async with store.open(record()) as stored:
        await stored.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await stored.note_turn(HELLO)

        log = await leased.read_log("s1", "transcript")
    said = [each.data for each in log.entries if each.kind == "message"]
    assert [each["message"] for each in said if isinstance(each, dict)] == HELLO


@pytest.mark.parametrize(("torn", "count"), [(b'{"crc":"0000', 2), (ENTRY_LINE, 3)])
async def test_an_addition_mends_the_end_that_a_killed_writer_left(
    store: ProjectSessions, leased: FileSessionStore, torn: bytes, count: int
) -> None:
    lease = await leased.acquire("s1", owner="worker 1", period=60)
    await leased.write_record(lease, record().to_dict())
    await leased.append(lease, "journal", [ENTRY])
    with (store.folder("s1") / "journal.jsonl").open("ab") as file:
        file.write(torn)

    await leased.append(lease, "journal", [ENTRY])

    entries = (await leased.read_log("s1", "journal")).entries
    assert entries == (ENTRY,) * count


async def test_a_damaged_log_is_not_read_as_if_it_were_whole(
    store: ProjectSessions, leased: FileSessionStore
) -> None:
    lease = await leased.acquire("s1", owner="worker 1", period=60)
    await leased.write_record(lease, record().to_dict())
    await leased.append(lease, "journal", [ENTRY, ENTRY])
    file = store.folder("s1") / "journal.jsonl"
    file.write_bytes(file.read_bytes().replace(b"note", b"nope", 1))

    with pytest.raises(ConfigError, match=r"line 2: .*session repair s1"):
        await leased.read_log("s1", "journal")


@pytest.mark.parametrize("content", ["[]", "{", '{"token": "one"}'])
async def test_a_lease_that_nobody_understands_keeps_everybody_out(
    store: ProjectSessions, leased: FileSessionStore, content: str
) -> None:
    lease = await leased.acquire("s1", owner="worker 1", period=60)
    (store.folder("s1") / LEASE).write_text(content, "utf-8")

    with pytest.raises(ConfigError, match=r"lease\.json"):
        await leased.write_record(lease, record().to_dict())
    with pytest.raises(ConfigError, match=r"lease\.json: .*delete the file when"):
        await leased.acquire("s1", owner="worker 2", period=60)
    with pytest.raises(ConfigError, match=r"lease\.json"):
        async with store.open(record()):
            pass
    assert "lease.json" in str(holder_of(store.folder("s1")))
