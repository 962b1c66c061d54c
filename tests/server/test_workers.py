"""Turns on an engine: a server puts them in the queue, and workers run, suspend and continue them."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from amplifier.server.activity import ActivityLog
from amplifier.server.application import StoredServer
from amplifier.server.quotas import open_quotas
from amplifier.server.records import waiting_turn
from amplifier.server.served_turns import TurnSetup
from amplifier.server.stores import ServerStores
from amplifier.server.workers import TurnWorker
from amplifier.testing.engines import InMemoryEngine
from amplifier_sdk.engines import ExecutionEngine, RunState, WorkerOptions
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.server.serving import REAP_INTERVAL, WRITES, Site, ended, write_call
from tests.server.test_operations import SPAN, TRACE, exporting
from tests.server.test_sessions import begun, events_until
from tests.serving.client import Caller

pytestmark = pytest.mark.timeout(60)


@attrs.frozen(eq=False)
class Fleet:
    """A server that runs no turn itself, and workers that come and go."""

    site: Site
    engine: ExecutionEngine
    caller: Caller
    server: StoredServer

    @asynccontextmanager
    async def worker(
        self, name: str, *, max_left: float = 600.0, **options: float
    ) -> AsyncIterator[ServerStores]:
        """Run a worker for a block; it has files of its own."""
        stores = ServerStores(self.site.store, self.site.dirs)
        quotas = await open_quotas(stores)
        activity = ActivityLog(await stores.server())
        setup = TurnSetup(self.server.options, activity, quotas=quotas)
        folder = self.site.home / "working" / name
        known = WorkerOptions(name=name, period=options.pop("period", 5.0), **options)  # type: ignore[arg-type]  # of those names
        worker = TurnWorker(stores, setup, known, folder, max_left=max_left)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(worker.work, self.engine)
                yield stores
                group.cancel_scope.cancel()
        finally:
            await stores.aclose()

    async def until(self, turn: str, state: RunState) -> None:
        """Wait until a turn's run is in a state."""
        with anyio.fail_after(20):
            while True:
                run = await self.engine.find(turn)
                if run is not None and run.state == state:
                    return
                await anyio.sleep(0.02)

    async def answer(self, session: str, option: str) -> None:
        """Answer the one open question of a session."""
        shown = (await self.caller.get(f"/sessions/{session}")).json
        (asked,) = shown["approvals"]
        path = f"/sessions/{session}/approvals/{asked['approval_id']}"
        answered = await self.caller.post(path, {"option": option})
        assert answered.status == 204


@asynccontextmanager
async def fleet(site: Site, *responses: JSONValue) -> AsyncIterator[Fleet]:
    secret, engine = await site.token(), InMemoryEngine()
    options = site.plan(*(responses or ("Fine.",)))
    stores = ServerStores(site.store, site.dirs)
    server = StoredServer(stores, options, queue=engine, reap_interval=REAP_INTERVAL)
    async with server.lifespan():
        yield Fleet(site, engine, Caller(server, secret), server)


async def test_turn_waits_for_a_worker_and_is_run_by_it(site: Site) -> None:
    async with fleet(site, "Fine.") as all_:
        session, turn = await begun(all_.caller)
        await all_.until(turn, "queued")
        busy = await all_.caller.post(f"/sessions/{session}/turns", {"prompt": "x"})
        async with all_.worker("w1"):
            done = await ended(all_.caller, session, turn)
            await all_.until(turn, "finished")
        events = await events_until(all_.caller, session, "turn_result")

    assert busy.status == 409
    assert done["output"] == "Fine."
    assert [event.id for event in events] == [*range(1, len(events) + 1)]
    assert not any((site.home / "working" / "w1" / "default").iterdir())


async def test_question_holds_no_worker_and_another_one_continues(site: Site) -> None:
    async with fleet(site, *WRITES) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1") as stores:
            await all_.until(turn, "waiting")
            store = (await stores.tenant("default")).store
            lease = await store.acquire(session, owner="anybody", period=5)
            await store.release(lease)
        before = (site.folder / "notes.txt").exists()
        await all_.answer(session, "Allow once")
        async with all_.worker("w2"):
            done = await ended(all_.caller, session, turn)

    assert not before
    assert done["output"] == "Written."
    assert (site.folder / "notes.txt").read_text() == "hello"


async def test_answer_covers_what_it_says_it_covers(site: Site) -> None:
    writes = [write_call(text) for text in ("a", "a", "b")]
    async with fleet(site, *writes, "Written.") as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
            chosen = "Allow edits by write_file, edit_file and move in this session"
            await all_.answer(session, chosen)
            done = await ended(all_.caller, session, turn)

    assert done["output"] == "Written."
    assert (site.folder / "notes.txt").read_text() == "b"


async def test_nobody_is_asked_about_a_call_with_a_secret(site: Site) -> None:
    secret = f"sk-ant-api03-{'Ab3dE5fG7h' * 9}"
    async with fleet(site, write_call(f"key={secret}"), "Not written.") as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            done = await ended(all_.caller, session, turn)

    assert done["output"] == "Not written."
    assert not (site.folder / "notes.txt").exists()


async def test_denied_call_is_not_made(site: Site) -> None:
    async with fleet(site, *WRITES) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
            await all_.answer(session, "Deny")
            done = await ended(all_.caller, session, turn)

    assert done["state"] == "finished"
    assert not (site.folder / "notes.txt").exists()


async def test_turn_that_waits_is_cancelled(site: Site) -> None:
    async with fleet(site, *WRITES) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
            await all_.caller.post(f"/sessions/{session}/turns/{turn}/cancel")
            done = await ended(all_.caller, session, turn)
            await all_.until(turn, "cancelled")
        shown = (await all_.caller.get(f"/sessions/{session}")).json

    assert done["state"] == "cancelled"
    assert shown["approvals"] == []


async def test_queued_turn_is_cancelled(site: Site) -> None:
    async with fleet(site) as all_:
        session, turn = await begun(all_.caller)
        await all_.caller.post(f"/sessions/{session}/turns/{turn}/cancel")
        done = await ended(all_.caller, session, turn)
        run = await all_.engine.find(turn)

    assert done["state"] == "cancelled"
    assert run is not None
    assert run.is_over


async def test_stopped_worker_returns_turn_and_another_finishes_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.server.served_turns._GRACE", 0.2)
    slow: JSONValue = {"deltas": ["a"], "delay": 30}
    async with fleet(site, slow) as all_:
        session, turn = await begun(all_.caller)
        async with all_.worker("w1", drain=0.0):
            await all_.until(turn, "running")
            await events_until(all_.caller, session, "turn_started")
        await all_.until(turn, "queued")
        record = await (await all_.server.stores.tenant("default")).store.read_record(
            session
        )
        all_.site.plan("Fine.")
        async with all_.worker("w2"):
            done = await ended(all_.caller, session, turn)

    assert record is not None
    assert waiting_turn(record) == turn
    assert done["state"] == "finished"


async def test_turn_that_was_accepted_and_not_queued_is_queued_later(
    site: Site,
) -> None:
    async with fleet(site, "Fine.") as all_:
        session, turn = await begun(all_.caller)
        all_.engine.shared.entries.clear()  # type: ignore[attr-defined]  # the double's
        async with all_.worker("w1"):
            done = await ended(all_.caller, session, turn)

    assert done["output"] == "Fine."


def delegating(site: Site) -> None:
    """Let the model of the plan delegate, and its agent write."""
    file = site.home / "plan.json"
    plan = json.loads(file.read_text())
    task: JSONValue = {"agent": "scribe", "instruction": "Write the notes"}
    own: list[JSONValue] = [
        {"tool_calls": [{"name": "task", "arguments": task}]},
        "All is written.",
    ]
    agents = [
        {"module": "provider-scripted", "config": dict(_script(site, "agent", WRITES))}
    ]
    plan["providers"][0]["config"] = _script(site, "root", own)
    plan["tools"].append({"module": "tool-task"})
    plan["agents"] = {
        "scribe": {
            "description": "Writes.",
            "system": {"instruction": "Write."},
            "providers": agents,
        }
    }
    file.write_text(json.dumps(plan))


def _script(site: Site, name: str, responses: Sequence[JSONValue]) -> JSONObject:
    script = site.home / f"{name}.json"
    script.write_text(json.dumps(list(responses)))
    return {"responses": str(script), "by_history": True}


async def test_question_of_an_agent_is_the_sessions_and_continues_the_agent(
    site: Site,
) -> None:
    async with fleet(site) as all_:
        delegating(site)
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        shown = (await all_.caller.get(f"/sessions/{session}")).json["approvals"]
        await all_.answer(session, "Allow once")
        async with all_.worker("w2"):
            done = await ended(all_.caller, session, turn)
        store = (await all_.server.stores.tenant("default")).store
        children = await store.children(session)
        said = await store.read_log(session, "transcript")

    assert "scribe" in shown[0]["prompt"]
    assert done.get("output") == "All is written.", done
    assert (site.folder / "notes.txt").read_text() == "hello"
    assert len(children) == 1
    results = [str(entry.data) for entry in said.entries if "Written." in str(entry)]
    assert results


async def test_another_machine_shows_what_a_worker_and_its_agents_did(
    site: Site,
) -> None:
    async with fleet(site) as all_:
        delegating(site)
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
            await all_.answer(session, "Allow once")
            await ended(all_.caller, session, turn)
        one = f"/sessions/{session}"
        paths = [f"{one}/{name}" for name in ("logs", "trace", "children")]
        before = [(await all_.caller.get(path)).json for path in paths]
        # what the worker's machine has, others have not
        shutil.rmtree(site.dirs.state / "sessions")
        after = [(await all_.caller.get(path)).json for path in paths]
    steps = [row[2] for row in after[1]["rows"]]

    assert len(after[0]["records"]) > 5
    assert before[0]["records"][: len(after[0]["records"])] == after[0]["records"]
    assert "write_file" in steps
    assert "task" in steps
    assert after[2] == before[2]
    assert after[2]["children"][0]["prompt"] == "Write the notes"


async def test_one_trace_leads_from_a_request_to_a_tool_of_two_workers(
    site: Site,
) -> None:
    exporter = exporting()
    exporter.clear()
    async with fleet(site, *WRITES) as all_:
        file = site.home / "plan.json"
        plan = json.loads(file.read_text())
        plan["hooks"].append({"module": "hooks-otel"})
        file.write_text(json.dumps(plan))
        session = await all_.caller.begin()
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        path = f"/sessions/{session}/turns"
        taken = await all_.caller.post(path, {"prompt": "Write"}, headers)
        turn = taken.json["turn_id"]
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        await all_.answer(session, "Allow once")
        async with all_.worker("w2"):
            await ended(all_.caller, session, turn)
    turns = [
        span
        for span in exporter.get_finished_spans()
        if span.name.startswith(("invoke_agent", "execute_tool"))
    ]
    traces = {f"{span.context.trace_id:032x}" for span in turns if span.context}

    # a part of the turn on each worker
    assert sum(span.name.startswith("invoke_agent") for span in turns) == 2
    assert "execute_tool write_file" in {span.name for span in turns}
    assert traces == {TRACE}
