"""Stored sessions over HTTP: turns, events, questions, and what another process sees of them."""

from __future__ import annotations

import base64
import shutil
from shutil import rmtree

import anyio
import attrs
import pytest
from structlog.testing import capture_logs

from amplifier.app.questions.stored_approvals import StoredApprovals
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.stored_questions import QUESTIONS
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.server.activity import ActivityLog
from amplifier.server.application import StoredServer
from amplifier.server.reaper import Reaper
from amplifier.server.records import (
    times_left,
    waiting_turn,
    with_new_turn,
    with_turn_left,
    with_turn_waiting,
    without_waiting,
)
from amplifier.server.turns import LocalTurns, store_prompt
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.stores import Lease
from tests.server.serving import WRITES, Site, ended, is_last
from tests.serving.client import Caller, Event

pytestmark = pytest.mark.timeout(60)

SHOWN = ("logs", "trace", "children")


async def begun(caller: Caller, prompt: JSONValue = "Write") -> tuple[str, str]:
    session = await caller.begin()
    answer = await caller.post(f"/sessions/{session}/turns", {"prompt": prompt})
    assert answer.status == 202, answer.body
    return session, answer.json["turn_id"]


async def events_until(
    caller: Caller, session: str, kind: str, after: int = 0
) -> list[Event]:
    """Read events until one of a kind."""
    found: list[Event] = []
    headers = {"last-event-id": str(after)}
    path = f"/sessions/{session}/events"
    with anyio.fail_after(20):
        async with caller.stream("GET", path, None, headers) as events:
            async for event in events:
                found.append(event)
                if event.type == kind:
                    return found
    raise AssertionError(found)


async def test_a_turn_is_stored_with_its_events(site: Site) -> None:
    secret = await site.token()
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller, "How are you?")
        done = await ended(caller, session, turn)
        events = await events_until(caller, session, "turn_result")
        shown = (await caller.get(f"/sessions/{session}")).json
        listed = (await caller.get("/sessions?search=how+are")).json["sessions"]
        none = (await caller.get("/sessions?search=elsewhere")).json["sessions"]

    assert done == {"turn_id": turn, "state": "finished", "output": "Fine."}
    assert [event.id for event in events] == [*range(1, len(events) + 1)]
    assert [events[0].type, events[-1].data["output"]] == ["turn_started", "Fine."]
    assert (shown["state"], shown["turn_count"]) == ("idle", 1)
    assert [one["session_id"] for one in listed] == [session]
    assert none == []


@pytest.mark.parametrize("slow", ["write_document", "read_documents"])
async def test_slow_store_loses_no_turn_that_it_takes(
    site: Site, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Whether its prompt is stored slowly or its session is fetched slowly, the lease is renewed meanwhile."""
    secret = await site.token()
    renew, method = FileSessionStore.renew, getattr(FileSessionStore, slow)
    renewed = anyio.Event()

    async def renew_seen(store: FileSessionStore, lease: Lease) -> None:
        await renew(store, lease)
        # the audit log has a lease as well
        if lease.owner == "olga":
            renewed.set()

    async def wait_first(*args: object) -> object:
        with anyio.fail_after(5):
            await renewed.wait()
        return await method(*args)

    monkeypatch.setattr("amplifier.server.sessions._PERIOD", 1.0)
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        session = await caller.begin()
        monkeypatch.setattr(FileSessionStore, "renew", renew_seen)
        monkeypatch.setattr(FileSessionStore, slow, wait_first)
        path = f"/sessions/{session}/turns"
        taken = await caller.post(path, {"prompt": "Go"})
        done = await ended(caller, session, taken.json["turn_id"])

    assert taken.status == 202
    assert done["output"] == "Fine."


async def test_a_session_is_resumed_by_another_process(site: Site) -> None:
    secret = await site.token()
    async with site.serving("One.", "Two.") as first:
        caller = Caller(first, secret)
        session, turn = await begun(caller)
        await ended(caller, session, turn)
    async with site.serving("Three.") as second:
        caller = Caller(second, secret)
        path = f"/sessions/{session}/turns"
        turn = (await caller.post(path, {"prompt": "Again"})).json["turn_id"]
        await ended(caller, session, turn)
        shown = (await caller.get(f"/sessions/{session}")).json
    stored = site.dirs.state / "sessions" / session / "transcript.jsonl"

    assert [turn["state"] for turn in shown["turns"]] == ["finished"] * 2, str(shown)
    assert shown["turn_count"] == 2
    assert [turn["state"] for turn in shown["turns"]] == ["finished"] * 2
    assert stored.read_text().count('"Again"') == 1


async def test_a_reader_at_another_process_misses_and_repeats_nothing(
    site: Site,
) -> None:
    secret = await site.token()
    async with site.serving(*WRITES) as one, site.serving(*WRITES) as other:
        here, there = Caller(one, secret), Caller(other, secret)
        session, turn = await begun(here)
        first = await events_until(there, session, "approval_requested")
        asked = first[-1].data
        path = f"/sessions/{session}/approvals/{asked['approval_id']}"
        # answered at the process that does not run the turn
        answered = await there.post(path, {"option": "Allow once"})
        rest = await events_until(here, session, "turn_result", first[-1].id)
        done = await ended(there, session, turn)
        again = await here.post(path, {"option": "Allow once"})
        otherwise = await here.post(path, {"option": "Deny"})

    ids = [event.id for event in (*first, *rest)]
    assert ids == [*range(1, len(ids) + 1)]
    assert "Creates notes.txt" in asked["prompt"]
    assert done["output"] == "Written."
    assert (site.folder / "notes.txt").read_text() == "hello"
    assert [answered.status, again.status, otherwise.status] == [204, 204, 409]


async def test_a_turn_is_cancelled_from_another_process(site: Site) -> None:
    secret = await site.token()
    async with site.serving(*WRITES) as one, site.serving(*WRITES) as other:
        here, there = Caller(one, secret), Caller(other, secret)
        session, turn = await begun(here)
        events = await events_until(here, session, "approval_requested")
        busy = await there.post(f"/sessions/{session}/turns", {"prompt": "x"})
        cancelled = await there.post(f"/sessions/{session}/turns/{turn}/cancel")
        rest = await events_until(here, session, "turn_cancelled", events[-1].id)
        done = await ended(here, session, turn)
        path = f"/sessions/{session}/approvals/{events[-1].data['approval_id']}"
        late = await there.post(path, {"option": "Allow once"})

    assert (busy.status, busy.json["error"]["code"]) == (409, "session_busy")
    assert cancelled.status == 202
    assert "approval_withdrawn" in [event.type for event in rest]
    assert done["state"] == "cancelled"
    assert late.status == 409
    assert not (site.folder / "notes.txt").exists()


async def reaped(server: StoredServer) -> None:
    """Look once for turns that nobody runs any more."""
    reaper = Reaper(server.stores, None, LocalTurns(None, None), 1)  # type: ignore[arg-type]  # it asks nobody
    await reaper.reap(await server.stores.tenant("default"))


async def left_turn(server: StoredServer, caller: Caller, kills: int) -> str:
    """Return a session as a process leaves it that was killed in its turn, and others before it."""
    session, lease = await leased_turn(server, caller, kills)
    await reaped(server)
    assert (await caller.get(f"/sessions/{session}")).json["state"] == "running"
    await (await server.stores.tenant("default")).store.release(lease)
    return session


async def leased_turn(
    server: StoredServer, caller: Caller, kills: int
) -> tuple[str, Lease]:
    """Return such a session while its process still has the lease."""
    session = await caller.begin()
    tenant = await server.stores.tenant("default")
    store = tenant.store
    lease = await store.acquire(session, owner="dead", period=60)
    await store_prompt(store, lease, "Go")
    record = await store.read_record(session)
    assert record is not None
    record = with_new_turn(record, "t1", "Go")
    for _ in range(kills):
        record = with_turn_left(record, "t1")
    # somebody had begun to continue it
    await store.write_record(lease, without_waiting(record))
    return session, lease


async def test_a_session_that_cannot_be_read_keeps_no_other_waiting(site: Site) -> None:
    secret = await site.token()
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        tenant = await server.stores.tenant("default")
        session, lease = await leased_turn(server, caller, 1)
        damaged, other = await leased_turn(server, caller, 1)
        assert isinstance(tenant.store, FileSessionStore)
        (tenant.store.files.folder(damaged) / QUESTIONS).write_text("{")
        with capture_logs() as logs:
            for each in (other, lease):
                await tenant.store.release(each)
            done = await ended(caller, session, "t1")

    assert done["output"] == "Fine."
    (reported,) = (
        each for each in logs if each["event"] == "server.session_not_reaped"
    )
    assert reported["session"] == damaged


async def test_a_turn_whose_process_died_is_continued_by_another(site: Site) -> None:
    secret = await site.token()
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        session = await left_turn(server, caller, kills=1)
        done = await ended(caller, session, "t1")

    assert done["output"] == "Fine."


async def test_a_turn_that_kills_its_processes_is_ended(site: Site) -> None:
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session = await left_turn(server, caller, kills=3)
        await ended(caller, session, "t1")
        shown = (await caller.get(f"/sessions/{session}")).json
        events = await events_until(caller, session, "turn_failed")

    assert shown["turns"][0]["error"]["code"] == "interrupted"
    assert is_last(events[-1])


async def test_a_turn_is_cancelled_between_opening_and_beginning(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, was_cancelled = anyio.Event(), anyio.Event()
    withdraw, cancel = StoredApprovals.withdraw_left, AmplifierSession.cancel

    async def begin_late(self: StoredApprovals) -> None:
        await withdraw(self)
        begins.set()
        await was_cancelled.wait()

    async def note(self: AmplifierSession, *, immediate: bool = False) -> None:
        await cancel(self, immediate=immediate)
        was_cancelled.set()

    monkeypatch.setattr(StoredApprovals, "withdraw_left", begin_late)
    monkeypatch.setattr(AmplifierSession, "cancel", note)
    secret = await site.token()
    async with site.serving({"deltas": ["a"], "delay": 60}) as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await begins.wait()
        await caller.post(f"/sessions/{session}/turns/{turn}/cancel")
        done = await ended(caller, session, turn)

    assert done["state"] == "cancelled"


async def test_a_turn_that_is_cancelled_as_it_waits_is_closed(site: Site) -> None:
    secret = await site.token()
    async with site.serving(*WRITES) as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await events_until(caller, session, "approval_requested")
        await unheld(server, session)
        await caller.post(f"/sessions/{session}/turns/{turn}/cancel")
        store = (await server.stores.tenant("default")).store
        journal = await store.read_log(session, "journal")
        site.plan("Again.")
        path = f"/sessions/{session}/turns"
        turn = (await caller.post(path, {"prompt": "Once more"})).json["turn_id"]
        done = await ended(caller, session, turn)

    assert journal.entries[-1].kind == "turn_ended"
    assert done["output"] == "Again."


async def test_question_outlives_its_server_and_turn_continues(site: Site) -> None:
    secret = await site.token()
    async with site.serving(*WRITES) as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        first = await events_until(caller, session, "approval_requested")
        asked = str(first[-1].data["approval_id"])
        await unheld(server, session)
        running = server.metrics.turns_running
    async with site.serving(*WRITES) as server:
        caller = Caller(server, secret)
        busy = await caller.post(f"/sessions/{session}/turns", {"prompt": "x"})
        open_ = (await caller.get("/questions")).json["questions"]
        path = f"/sessions/{session}/approvals/{asked}"
        await caller.post(path, {"option": "Allow once"})
        rest = await events_until(caller, session, "turn_result", first[-1].id)
        done = await ended(caller, session, turn)
        idle = await caller.get(f"/sessions/{session}")

    assert running == 0
    assert busy.status == 409
    assert [each["approval_id"] for each in open_] == [asked]
    assert done["output"] == "Written."
    kinds = [event.type for event in (*first, *rest)]
    assert kinds.count("tool_finished") == kinds.count("tool_started") == 1
    assert (site.folder / "notes.txt").read_text() == "hello"
    assert (idle.json["state"], idle.json["turn_count"]) == ("idle", 1)


async def test_turn_that_waits_is_cancelled_by_another_server(site: Site) -> None:
    secret = await site.token()
    async with site.serving(*WRITES) as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        first = await events_until(caller, session, "approval_requested")
        await unheld(server, session)
    async with site.serving(*WRITES) as server:
        caller = Caller(server, secret)
        await caller.post(f"/sessions/{session}/turns/{turn}/cancel")
        done = await ended(caller, session, turn)
        path = f"/sessions/{session}/approvals/{first[-1].data['approval_id']}"
        late = await caller.post(path, {"option": "Allow once"})
        again = await caller.post(f"/sessions/{session}/turns", {"prompt": "And now?"})
        result = await ended(caller, session, again.json["turn_id"])

    assert done["state"] == "cancelled"
    assert late.status == 409
    assert result["state"] == "finished"
    assert not (site.folder / "notes.txt").exists()


async def test_wish_to_cancel_outlives_whoever_was_about_to_let_go(site: Site) -> None:
    secret = await site.token()
    async with site.serving(*WRITES) as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await events_until(caller, session, "approval_requested")
        await unheld(server, session)
        tenant = await server.stores.tenant("default")
        lease = await tenant.store.acquire(session, owner="closing", period=15)
        path = f"/sessions/{session}/turns/{turn}"
        asked = (await caller.post(f"{path}/cancel")).json
        await tenant.store.release(lease)
        # the server's own reaper looks as well, and may be at it
        done = await ended(caller, session, turn)

    assert asked["state"] == "running"
    assert done["state"] == "cancelled"


async def test_turn_that_is_stored_as_waiting_meanwhile_was_not_killed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session = await left_turn(server, caller, kills=0)
        acquire = FileSessionStore.acquire

        async def acquire_later(
            store: FileSessionStore, session_id: str, *, owner: str, period: float
        ) -> Lease:
            lease = await acquire(store, session_id, owner=owner, period=period)
            record = await store.read_record(session_id)
            assert record is not None
            await store.write_record(lease, with_turn_waiting(record, "t1"))
            return lease

        monkeypatch.setattr(FileSessionStore, "acquire", acquire_later)
        engine = LocalTurns(None, None)  # type: ignore[arg-type]  # it asks nobody
        tenant = await server.stores.tenant("default")
        is_left = await engine.is_left(tenant, session, "t1")
        record = await tenant.store.read_record(session)

    assert not is_left
    assert record is not None
    assert times_left(record, "t1") == 0


async def test_questions_of_turns_that_are_no_more_listed_are_forgotten(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but an answer that covers further calls: a session may have any number of turns."""
    monkeypatch.setattr("amplifier.server.records._MAX_TURNS", 2)
    secret = await site.token()
    async with site.serving(*WRITES, "Two.", "Three.") as server:
        caller = Caller(server, secret)
        session, first = await begun(caller)
        asked = (await events_until(caller, session, "approval_requested"))[-1]
        path = f"/sessions/{session}/approvals/{asked.data['approval_id']}"
        await caller.post(path, {"option": "Allow once"})
        await ended(caller, session, first)
        store = (await server.stores.tenant("default")).store
        before = await store.questions(session)
        (once,) = (each for each in before if each.answer is not None)
        covering = attrs.evolve(
            once,
            question_id="always",
            options=("Allow always",),
            answer="Allow always",
            details={**once.details, "covers_sha256": "x"},
        )
        foreign = attrs.evolve(once, question_id="foreign", details={})
        lease = await store.acquire(session, owner="any", period=5)
        for question in (covering, foreign):
            await store.ask(lease, question)
        await store.release(lease)
        turns = list[str]()
        for _ in range(2):
            answer = await caller.post(f"/sessions/{session}/turns", {"prompt": "Go"})
            turns.append(answer.json["turn_id"])
            await ended(caller, session, turns[-1])
        after = [each.question_id for each in await store.questions(session)]

    assert {each.details["turn_id"] for each in before} == {first}
    cancels = [f"{turn}-{mode}" for turn in turns for mode in ("immediate", "graceful")]
    assert sorted(after) == sorted(["always", "foreign", *cancels])


async def test_session_continues_where_its_files_are_not(site: Site) -> None:
    secret = await site.token()
    async with site.serving("One.", "Two.") as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await ended(caller, session, turn)
        tenant = await server.stores.tenant("default")
        rmtree(tenant.files.folder(session))
        second = await caller.post(f"/sessions/{session}/turns", {"prompt": "And?"})
        done = await ended(caller, session, second.json["turn_id"])
        log = await tenant.store.read_log(session, "transcript")

    assert done["output"] == "Two."
    said = [
        as_object(as_object(entry.data).get("message")).get("role")
        for entry in log.entries
        if entry.kind == "message"
    ]
    assert said == ["user", "assistant", "user", "assistant"]


async def unheld(server: StoredServer, session: str) -> None:
    """Wait until nobody has the lease on a session."""
    store, seen = (await server.stores.tenant("default")).store, ""
    with anyio.fail_after(20):
        while True:
            record = await store.read_record(session)
            assert record is not None
            is_held = await store.holder(session) is not None
            if waiting_turn(record) is not None and not is_held:
                return
            seen = await store.wait_for_change(session, seen, max_wait=1)


async def test_a_session_is_deleted_with_all_of_it(site: Site) -> None:
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await ended(caller, session, turn)
        deleted = await caller.request("DELETE", f"/sessions/{session}")
        gone = await caller.get(f"/sessions/{session}")

    assert (deleted.status, gone.status) == (204, 404)
    assert not (site.dirs.state / "sessions" / session).exists()


async def test_a_secret_reaches_the_store_of_no_event(site: Site) -> None:
    secret = await site.token()
    key = "sk-ant-api03-" + "a1B2c3D4e5" * 9
    pieces = [f"The key is {key[:20]}", key[20:50], f"{key[50:]} there."]
    async with site.serving({"deltas": pieces}) as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller, f"Remember {key}")
        await ended(caller, session, turn)
    found = [
        path
        for path in site.home.rglob("*")
        if path.is_file()
        and path.name != "plan.json"
        and key in path.read_text("latin-1")
    ]

    assert found == []


async def test_an_image_is_stored_whole_and_no_secret_beside_it(site: Site) -> None:
    data = base64.b64encode(b"GIF89a" + bytes(300)).decode()
    key = "sk-ant-api03-" + "a1B2c3D4e5" * 9
    notes: JSONValue = {"type": "text", "data": f"The key is {key}", "name": "n"}
    prompt: JSONValue = [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": {"type": "base64", "data": data}},
        {"type": "document", "source": notes},
    ]
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller, prompt)
        await ended(caller, session, turn)
        log = (await caller.get(f"/sessions/{session}/logs")).body
        shown = (await caller.get(f"/sessions/{session}")).json
    folder = site.dirs.state / "sessions" / session

    assert shown["prompt"] == "Look"
    assert data in (folder / "transcript.jsonl").read_text()
    assert data[:64].encode() not in log
    assert not [
        path for path in folder.rglob("*") if path.is_file() and key in path.read_text()
    ]


async def test_mentions_of_a_caller_are_followed_nowhere(site: Site) -> None:
    (site.folder / "private.txt").write_text("the content of a file")
    secret = await site.token()
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller, "Look at @private.txt")
        await ended(caller, session, turn)
        log = (await caller.get(f"/sessions/{session}/logs")).body

    assert b"the content of a file" not in log


async def test_another_machine_shows_what_came_of_a_session(site: Site) -> None:
    """Its store is shared, and the files of the machine that ran the turn are not there."""
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await ended(caller, session, turn)
        one = f"/sessions/{session}"
        before = [(await caller.get(f"{one}/{name}")).json for name in SHOWN]
        shutil.rmtree(site.dirs.state / "sessions" / session)
        after = [(await caller.get(f"{one}/{name}")).json for name in SHOWN]
        saved = list((site.dirs.state / "sessions").glob(f"{session}*"))

    assert len(before[0]["records"]) > 5
    assert len(before[1]["rows"]) > 2
    # the log goes on when the turn has ended: with the end of the session
    assert before[0]["records"][: len(after[0]["records"])] == after[0]["records"]
    assert len(after[1]["rows"]) == len(before[1]["rows"])
    assert after[2] == before[2]
    assert saved == []


async def costed(server: StoredServer, tenant: str) -> None:
    """Wait until it is noted what a turn of a tenant cost."""
    activity = ActivityLog(await server.stores.server())
    with anyio.fail_after(20):
        # asked without a token, which allows so many requests a minute
        while not await activity.read("cost", tenant):
            await anyio.lowlevel.checkpoint()


async def test_who_owns_the_server_sees_what_each_tenant_costs(site: Site) -> None:
    names = ("default", "acme", "other")
    secrets = {name: await site.token(name, "owner", name) for name in names}
    reader = await site.token("reader", "reader")
    async with site.serving() as server:
        for name, secret in secrets.items():
            await begun(Caller(server, secret))
            await costed(server, name)
        seen = {
            name: (await Caller(server, secret).get("/cost")).json["days"]
            for name, secret in {**secrets, "reader": reader}.items()
        }
    tenants = {name: [day["tenant"] for day in days] for name, days in seen.items()}

    assert tenants == {
        "default": ["acme", "default", "other"],
        "acme": ["acme"],
        "other": ["other"],
        "reader": ["default"],
    }


async def test_what_sessions_came_to_is_shown(site: Site) -> None:
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await ended(caller, session, turn)
        one = f"/sessions/{session}"
        trace = (await caller.get(f"{one}/trace")).json
        logs = (await caller.get(f"{one}/logs")).json["records"]
        children = (await caller.get(f"{one}/children")).json["children"]
        await costed(server, "default")
        days = (await caller.get("/cost")).json["days"]
        audit = (await caller.get("/audit")).json["entries"]
        metrics = (await caller.get("/metrics")).body.decode()

    assert [row[0] for row in trace["rows"]][:2] == ["turn", "iteration"]
    assert logs[0]["event"] == "session:start"
    assert children == []
    assert days[0]["turns"] == 1
    actions = [entry["action"] for entry in audit]
    assert actions == ["add_token", "begin_session", "begin_turn"]
    assert 'turns_total{state="finished"} 1' in metrics
