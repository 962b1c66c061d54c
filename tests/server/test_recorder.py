"""The recorder of a turn's events: none is lost where the turn ends as they are stored."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import attrs

from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.store import ProjectSessions
from amplifier.server.recorder import TurnRecorder
from amplifier_sdk.stores import Lease, LogEntry, LogName
from tests.server.serving import Site


@attrs.frozen(eq=False)
class WaitingStore(FileSessionStore):
    """A store that says when it is about to append."""

    begun: anyio.Event = attrs.field(factory=anyio.Event)

    async def append(
        self, lease: Lease, log: LogName, entries: Sequence[LogEntry]
    ) -> None:
        self.begun.set()
        await anyio.lowlevel.checkpoint()
        await super().append(lease, log, entries)


async def test_event_is_stored_once_though_the_turn_ends_meanwhile(site: Site) -> None:
    store = WaitingStore(ProjectSessions(site.home / "recorded"))
    lease = await store.acquire("s", owner="test", period=60)
    await store.write_record(lease, {"version": 1, "session_id": "s"})
    recorder = TurnRecorder(store, lease)
    async with anyio.create_task_group() as group:
        group.start_soon(recorder.run)
        recorder.add({"type": "approval_requested"})
        await store.begun.wait()
        group.cancel_scope.cancel()
    await recorder.flush()
    log = await store.read_log("s", "events")

    assert [entry.kind for entry in log.entries] == ["approval_requested"]
