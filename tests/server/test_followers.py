"""Followers of a stored session: who is far behind gets everything, at a price that does not grow with that."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.store import ProjectSessions
from amplifier.server.followers import Followers, StoredLog
from amplifier.serving.limits import ServerLimits
from amplifier_sdk.stores import Lease, LogEntry, LogName, SessionLog
from tests.server.serving import Site

pytestmark = pytest.mark.timeout(60)

EVENTS = 3000


class CountingStore(FileSessionStore):
    """A store that counts how often its logs are read."""

    reads: int

    def __init__(self, files: ProjectSessions) -> None:
        super().__init__(files)
        object.__setattr__(self, "reads", 0)

    async def read_log(
        self, session_id: str, log: LogName, *, after: int = 0
    ) -> SessionLog:
        object.__setattr__(self, "reads", self.reads + 1)
        return await super().read_log(session_id, log, after=after)


async def begun(site: Site) -> tuple[CountingStore, Lease]:
    store = CountingStore(ProjectSessions(site.home / "followed"))
    lease = await store.acquire("s", owner="test", period=60)
    await store.write_record(lease, {"version": 1, "session_id": "s"})
    return store, lease


def entries(count: int) -> Sequence[LogEntry]:
    return [
        LogEntry(kind="text_delta", data={"type": "text_delta", "n": n}, at=0)
        for n in range(1, count + 1)
    ]


async def read_all(log: StoredLog, count: int) -> bytes:
    after, body = 0, b""
    with anyio.fail_after(20):
        while after < count:
            new = await log.read(after)
            assert new is not None
            after, piece = new
            body += piece
    return body


async def test_events_that_come_at_once_are_all_read(site: Site) -> None:
    store, lease = await begun(site)
    async with anyio.create_task_group() as group:
        limits = ServerLimits(max_events=10)
        followed = await Followers(group, limits).follow("t", store, "s")
        with followed.reader():
            read, done = list[bytes](), anyio.Event()

            async def read_from_the_first() -> None:
                read.append(await read_all(followed.log, 100))
                done.set()

            group.start_soon(read_from_the_first)
            await anyio.wait_all_tasks_blocked()
            await store.append(lease, "events", entries(100))
            # without a reader nobody follows
            await done.wait()
        group.cancel_scope.cancel()
    ids = [line for line in read[0].split(b"\n") if line.startswith(b"id: ")]

    assert b'"gap"' not in read[0]
    assert ids == [b"id: %d" % number for number in range(1, 101)]


async def test_who_is_behind_has_the_log_read_a_few_times(site: Site) -> None:
    store, lease = await begun(site)
    await store.append(lease, "events", entries(EVENTS))
    async with anyio.create_task_group() as group:
        limits = ServerLimits(max_events=10)
        followed = await Followers(group, limits).follow("t", store, "s")
        with followed.reader():
            await anyio.wait_all_tasks_blocked()
            before = store.reads
            body = await read_all(followed.log, EVENTS)
            reads = store.reads - before
        group.cancel_scope.cancel()

    assert body.count(b"id: ") == EVENTS
    assert len(body) > 2 * 65_536
    # a further one of the follower itself may come between
    assert reads <= 3


class SlowStore(CountingStore):
    """A store that reads a log once everything else has happened."""

    async def read_log(
        self, session_id: str, log: LogName, *, after: int = 0
    ) -> SessionLog:
        await anyio.wait_all_tasks_blocked()
        return await super().read_log(session_id, log, after=after)


async def test_reader_comes_while_the_last_one_is_forgotten(site: Site) -> None:
    store, _ = await begun(site)
    slow = SlowStore(store.files)
    async with anyio.create_task_group() as group:
        followers = Followers(group, ServerLimits())
        first = await followers.follow("t", slow, "s")
        with first.reader():
            await anyio.lowlevel.checkpoint()
        second = await followers.follow("t", slow, "s")
        group.cancel_scope.cancel()

    assert second is not first
    assert not second.is_left


async def test_reader_that_was_on_its_way_misses_nothing(site: Site) -> None:
    store, lease = await begun(site)
    async with anyio.create_task_group() as group:
        followers = Followers(group, ServerLimits())
        followed = await followers.follow("t", store, "s")
        known = await followers.follow("t", store, "s")
        with followed.reader():
            await anyio.wait_all_tasks_blocked()
        await store.append(lease, "events", entries(3))
        await anyio.wait_all_tasks_blocked()
        with known.reader():
            body = await read_all(known.log, 3)
        group.cancel_scope.cancel()

    assert known is followed
    assert body.count(b"id: ") == 3
