"""A store that does not answer for a while, or does not take something at all: nothing ends that should not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, cast

import anyio
import attrs
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from amplifier.app.store.file_store import FileSessionStore
from amplifier.server.application import StoredServer
from amplifier.server.records import (
    running_turn,
    with_turn_left,
    with_turn_waiting,
)
from amplifier.server.retries import Retries
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import StoreError, StoreUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import LogEntry, SessionStore
from tests.server.serving import Site, ended
from tests.server.test_sessions import begun, leased_turn
from tests.server.test_workers import fleet
from tests.serving.client import Caller

pytestmark = pytest.mark.timeout(60)

METHODS: Final = (
    "acquire",
    "append",
    "list_sessions",
    "questions",
    "read_documents",
    "read_log",
    "read_record",
    "release",
    "renew",
    "replace",
    "wait_for_change",
    "write_document",
    "write_record",
)


@attrs.define
class Outage:
    """What stores do at the moment: answer, or raise."""

    error: Callable[[], Exception] | None = None
    calls: Counter[str] = attrs.field(factory=Counter)


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    """Let a test end and begin the answers of all stores."""
    state = Outage()
    for name in METHODS:
        _gate(monkeypatch, name, state)
    monkeypatch.setattr("amplifier.server.sessions._PERIOD", 1.0)
    monkeypatch.setattr("amplifier.server.turns._PERIOD", 1.0)
    return state


def _gate(monkeypatch: pytest.MonkeyPatch, name: str, state: Outage) -> None:
    method: Callable[..., Awaitable[object]] = getattr(FileSessionStore, name)  # type: ignore[explicit-any]  # of any signature

    async def call(*args: object, **options: object) -> object:
        if state.error is not None:
            raise state.error()
        state.calls[name] += 1
        return await method(*args, **options)

    monkeypatch.setattr(FileSessionStore, name, call)


async def reported(logs: list[EventDict], event: str) -> None:
    with anyio.fail_after(20):
        while True:
            if any(each["event"] == event for each in logs):
                return
            await anyio.sleep(0.02)


async def looks(outage: Outage, count: int) -> None:
    """Wait until a reaper has looked at all turns so often."""
    wanted = outage.calls["list_sessions"] + count + 1
    with anyio.fail_after(20):
        while True:
            if outage.calls["list_sessions"] >= wanted:
                return
            await anyio.sleep(0.02)


@pytest.fixture(params=[StoreUnavailableError, OSError])
def going_away(
    request: pytest.FixtureRequest, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> Outage:
    """Let the store go away, once, in the middle of a turn."""
    append, kind, is_first = FileSessionStore.append, request.param, True

    async def go_away(store: FileSessionStore, *args: object) -> None:
        nonlocal is_first
        if args[1] == "journal" and is_first:
            is_first, outage.error = False, lambda: kind("gone")
        await append(store, *args)  # type: ignore[arg-type]  # its own

    monkeypatch.setattr(FileSessionStore, "append", go_away)
    return outage


async def test_server_outlives_a_store_that_goes_away_in_a_turn(
    site: Site, going_away: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, killed = await site.token(), note_kills(monkeypatch)
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        with capture_logs() as logs:
            session, turn = await begun(caller)
            await reported(logs, "server.not_reaped")
            await reported(logs, "server.turn_left")
        going_away.error = None
        done = await ended(caller, session, turn)

    assert killed == []
    (texts_shown,) = (each for each in logs if each["event"] == "server.not_reaped")
    assert texts_shown["problem"].endswith("Error: gone")
    assert texts_shown["exc_info"] is None
    assert done["output"] == "Fine."


def note_kills(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the turns of which a kill is counted, as they are."""
    killed = list[str]()

    def note(record: JSONObject, turn_id: str) -> JSONObject:
        killed.append(turn_id)
        return with_turn_left(record, turn_id)

    monkeypatch.setattr("amplifier.server.turns.with_turn_left", note)
    return killed


async def without_lease(
    server: StoredServer, caller: Caller, outage: Outage
) -> tuple[SessionStore, str]:
    """Return a session whose turn runs in another process and whose lease ended while the store was away."""
    store = (await server.stores.tenant("default")).store
    session, lease = await leased_turn(server, caller, 0)
    with capture_logs() as logs:
        outage.error = lambda: StoreUnavailableError("gone")
        await reported(logs, "server.not_reaped")
    outage.error = None
    await store.release(lease)
    return store, session


async def test_reaper_leaves_turns_to_their_owners_after_an_outage(
    site: Site, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, killed = await site.token(), note_kills(monkeypatch)
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        store, session = await without_lease(server, caller, outage)
        await looks(outage, 3)
        record = await store.read_record(session)
        assert record is not None
        assert running_turn(record) == "t1"
        # its process comes back
        lease = await store.acquire(session, owner="server", period=60)
        await store.write_record(lease, with_turn_waiting(record, "t1"))
        await store.release(lease)
        done = await ended(caller, session, "t1")

    assert killed == []
    assert done["output"] == "Fine."


async def test_turn_whose_process_died_in_an_outage_is_continued(
    site: Site, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.server.reaper._RETURN", 0.1)
    secret, killed = await site.token(), note_kills(monkeypatch)
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        _, session = await without_lease(server, caller, outage)
        done = await ended(caller, session, "t1")

    assert killed == ["t1"]
    assert done["output"] == "Fine."


async def test_worker_outlives_a_store_that_goes_away_in_a_turn(
    site: Site, going_away: Outage
) -> None:
    async with fleet(site, "Fine.") as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1", period=1.0):
            with capture_logs() as logs:
                await reported(logs, "worker.store_unavailable")
            going_away.error = None
            done = await ended(all_.caller, session, turn)

    assert done["output"] == "Fine."


async def test_failures_in_a_row_are_one_line_and_their_pauses_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paused = list[float]()

    async def note(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(anyio, "sleep", note)
    retries = Retries("store.gone", 0.5, 3.0)
    with capture_logs() as logs:
        for _ in range(5):
            await retries.wait(OSError("full\nof it"), session="s1")
        retries.succeed()
        await retries.wait(OSError("full"))

    assert paused == [0.5, 1.0, 2.0, 3.0, 3.0, 0.5]
    assert [each["problem"] for each in logs] == [
        "OSError: full of it",
        "OSError: full",
    ]
    assert all(each["exc_info"] is None for each in logs)


@pytest.mark.parametrize("refused", ["message", "text_delta", "turn_result"])
async def test_turn_fails_of_which_the_store_does_not_take_something(
    site: Site, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """The store answers all the same: it is not waited for, and the turn is not begun again, without end."""
    secret, append = await site.token(), FileSessionStore.append

    async def refuse(store: FileSessionStore, *args: object) -> None:
        for entry in cast("Sequence[LogEntry]", args[2]):
            if entry.kind == refused and "unstorable" in json.dumps(entry.data):
                # what a server says of one statement may be what it says when it goes away
                is_said = args[1] == "events"
                raise (StoreError if is_said else StoreUnavailableError)("too large")
        await append(store, *args)  # type: ignore[arg-type]  # its own

    monkeypatch.setattr("amplifier.server.sessions._PERIOD", 3.0)
    monkeypatch.setattr("amplifier.app.store.replica._REFUSED", 0.5)
    async with site.serving("unstorable", "Fine.") as server:
        caller = Caller(server, secret)
        with capture_logs() as logs:
            session, turn = await begun(caller, "Begin")
            with monkeypatch.context() as patch:
                patch.setattr(FileSessionStore, "append", refuse)
                failed = await ended(caller, session, turn)
        path = f"/sessions/{session}/turns"
        taken = await caller.post(path, {"prompt": "Go"})
        done = await ended(caller, session, taken.json["turn_id"])

    assert as_object(failed["error"])["code"] == "store_refused"
    (texts_shown,) = (each for each in logs if each["event"] == "server.turn_failed")
    assert "too large" in str(texts_shown["exc_info"])
    assert done["state"] == "finished"
