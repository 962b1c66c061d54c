"""Workers are killed while they run turns: no turn is lost, no finished step repeated, and doubt is reported."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import attrs
import pytest

from amplifier.app.base_plans import PlanOptions
from amplifier.server.application import StoredServer
from amplifier.server.engines import open_named_engine
from amplifier.server.records import turns_of
from amplifier.server.stores import ServerStores
from amplifier.testing.postgres import (
    PASSWORD,
    PostgresServer,
    find_programs,
    running_server,
)
from amplifier_sdk.errors import StoreError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops.notices import IN_DOUBT
from amplifier_sdk.stores import SessionStore
from tests.server.serving import Site
from tests.serving.client import Caller

_WORKERS = int(os.environ.get("AMPLIFIER_KILL_WORKERS", "2"))
_SESSIONS = int(os.environ.get("AMPLIFIER_KILL_SESSIONS", "8"))
_STEPS = int(os.environ.get("AMPLIFIER_KILL_STEPS", "5"))
_PAUSE = float(os.environ.get("AMPLIFIER_KILL_PAUSE", "4"))
_KILLS = int(os.environ.get("AMPLIFIER_KILLS", "3"))
_RESTARTS = int(os.environ.get("AMPLIFIER_KILL_RESTARTS", "1"))
_PERIOD = 3.0
_LIMIT = 120 + _SESSIONS * _STEPS * 0.5 + (_KILLS + _RESTARTS) * _PAUSE * 2

pytestmark = [
    pytest.mark.process,
    pytest.mark.figures,
    pytest.mark.timeout(_LIMIT * 2),
]

_TOOL = '''
import os

import anyio

from amplifier_sdk import Coordinator, tool


@tool(effects=("write",))
async def effect(step: int, coordinator: Coordinator) -> str:
    """Append a line to a file."""
    line = f"{coordinator.session_id} {step}\\n".encode()
    file = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line)
    os.close(file)
    await anyio.sleep(0.2)
    return f"done {step}"
'''


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Name the backend of the test's own process; the workers take turns."""
    return "asyncio"


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """A server of the test's own, which is restarted."""
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with running_server(programs) as server:
        yield server


@attrs.define(eq=False)
class Fleet:
    """Worker processes, and the file that their tool writes in."""

    site: Site
    engine: str
    workers: list[subprocess.Popen[bytes]] = attrs.field(factory=list)

    @property
    def effects(self) -> Path:
        return self.site.home / "effects.log"

    @property
    def options(self) -> PlanOptions:
        return PlanOptions(file=self.site.home / "plan.json")

    def prepare(self) -> None:
        """Write the tool, as a package that is installed, and the plan."""
        packages = self.site.home / "packages"
        about = packages / "effects-1.0.dist-info"
        about.mkdir(parents=True)
        (packages / "effects_tool.py").write_text(_TOOL)
        (about / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: effects\nVersion: 1.0\n"
        )
        (about / "entry_points.txt").write_text(
            "[amplifier.modules]\ntool-effect = effects_tool:effect\n"
        )
        responses: list[JSONValue] = [
            {"tool_calls": [{"name": "effect", "arguments": {"step": step}}]}
            for step in range(_STEPS)
        ]
        config: JSONObject = {"responses": [*responses, "Done."], "by_history": True}
        plan: JSONObject = {
            "session": {
                "orchestrator": "loop-basic",
                "context": "context-simple",
            },
            "providers": [{"module": "provider-scripted", "config": config}],
            "tools": [{"module": "tool-effect"}],
        }
        (self.site.home / "plan.json").write_text(json.dumps(plan))

    def hire(self) -> subprocess.Popen[bytes]:
        """Start a worker, on the other backend than the one before."""
        backend = ("asyncio", "trio")[len(self.workers) % 2]
        words = ["--engine", self.engine, "--store", self.site.store]
        words += ["--plan", str(self.site.home / "plan.json"), "--backend", backend]
        words += ["--period", str(_PERIOD)]
        environ = {
            **os.environ,
            "PYTHONPATH": str(self.site.home / "packages"),
            "EFFECTS": str(self.effects),
        }
        log = (self.site.home / f"worker-{len(self.workers)}.log").open("wb")
        with log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "amplifier", "worker", *words],
                env=environ,
                cwd=self.site.folder,
                stderr=log,
            )
        self.workers.append(worker)
        return worker

    def alive(self) -> list[subprocess.Popen[bytes]]:
        return [each for each in self.workers if each.poll() is None]

    def logs(self) -> str:
        return "\n".join(
            file.read_text()[-3000:] for file in self.site.home.glob("worker-*.log")
        )


@contextmanager
def fleet(site: Site, engine: str) -> Iterator[Fleet]:
    made = Fleet(site, engine)
    made.prepare()
    try:
        yield made
    finally:
        for worker in made.workers:
            worker.kill()
            worker.wait()


async def _count(
    store: SessionStore, fleet: Fleet, sessions: list[str]
) -> Counter[str]:
    """Count what became of the turns and their steps."""
    counts: Counter[str] = Counter(lost=0, repeated_effects=0, in_doubt=0, missing=0)
    lines = fleet.effects.read_text().splitlines()
    effects = Counter(lines)
    counts["repeated_effects"] = sum(number - 1 for number in effects.values())
    for session in sessions:
        record = await store.read_record(session)
        assert record is not None
        counts["lost"] += turns_of(record)[-1]["state"] != "finished"
        said = await store.read_log(session, "transcript")
        messages = [
            entry.data["message"]
            for entry in said.entries
            if entry.kind == "message" and isinstance(entry.data, dict)
        ]
        answers = [each for each in messages if each["role"] == "assistant"]  # type: ignore[index, call-overload]  # JSON data
        counts["repeated_answers"] += len(answers) - _STEPS - 1
        doubtful = sum(IN_DOUBT in str(each) for each in messages)
        counts["in_doubt"] += doubtful
        done = sum(f"{session} {step}" in effects for step in range(_STEPS))
        counts["missing"] += max(0, _STEPS - done - doubtful)
    return counts


async def _all_ended(store: SessionStore, sessions: list[str]) -> bool:
    for session in sessions:
        record = await store.read_record(session)
        if record is None or turns_of(record)[-1]["state"] == "running":
            return False
    return True


async def test_killed_workers_lose_and_repeat_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer
) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.setenv("AMPLIFIER_HOME", str(home))
    monkeypatch.chdir(folder)
    site = Site(folder, home, postgres.url())
    engine_url = postgres.url().replace("postgresql://", "dbos+postgresql://")
    with fleet(site, engine_url) as workers:
        secret = await site.token()
        engine = await open_named_engine(engine_url)
        server = StoredServer(
            ServerStores(site.store, site.places), workers.options, queue=engine
        )
        begun = time.monotonic()
        async with server.lifespan():
            caller = Caller(server, secret)
            sessions = []
            for number in range(_SESSIONS):
                session = await caller.begin()
                path = f"/sessions/{session}/turns"
                answer = await caller.post(path, {"prompt": f"Work {number}"})
                assert answer.status == 202, answer.body
                sessions.append(session)
            for _ in range(_WORKERS):
                workers.hire()
            await _disturb(workers, postgres)
            store = (await server.stores.tenant("default")).store
            with anyio.move_on_after(_LIMIT) as waiting:
                while True:  # the store may be restarted
                    with suppress(StoreError):
                        if await _all_ended(store, sessions):
                            break
                    await anyio.sleep(0.2)
            seconds = time.monotonic() - begun
            counts = await _count(store, workers, sessions)
        await engine.aclose()
    told = f"{_WORKERS} workers, {_SESSIONS} sessions, {_STEPS} steps, {_KILLS} kills"
    print(f"{told}, {_RESTARTS} restarts: {seconds:.0f} s, {dict(counts)}", flush=True)  # noqa: T201  # a row of the table
    assert not waiting.cancelled_caught, workers.logs()
    assert counts["lost"] == 0, workers.logs()
    assert counts["repeated_effects"] == 0
    assert counts["repeated_answers"] == 0
    assert counts["missing"] == 0


async def _disturb(workers: Fleet, postgres: PostgresServer) -> None:
    """Kill workers, each followed by a new one, and restart the database in between."""
    chosen = random.Random(7)
    restarts = {(at + 1) * _KILLS // (_RESTARTS + 1) for at in range(_RESTARTS)}
    with anyio.move_on_after(60):
        while not workers.effects.exists():  # noqa: ASYNC110  # another process writes it
            await anyio.sleep(0.1)
    for kill in range(_KILLS):
        await anyio.sleep(_PAUSE / 2)
        victim = chosen.choice(workers.alive())
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        workers.hire()
        if kill in restarts:
            await anyio.to_thread.run_sync(postgres.stop)
            await anyio.to_thread.run_sync(postgres.start)
        await anyio.sleep(_PAUSE / 2)
