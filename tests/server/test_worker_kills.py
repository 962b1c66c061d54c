"""Workers are killed while they run turns: no turn is lost, no finished step repeated, and doubt is reported."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import attrs
import pytest

from amplifier.app.plans.base_plans import PlanOptions
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
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import StoreError
from amplifier_sdk.loops.notices import IN_DOUBT
from amplifier_sdk.stores import LogName, SessionStore
from tests.server.effects import CLOCK, write_effects
from tests.server.partitions import Host, host_of
from tests.server.serving import Site
from tests.serving.client import Caller

_WORKERS = int(os.environ.get("AMPLIFIER_KILL_WORKERS", "2"))
_SESSIONS = int(os.environ.get("AMPLIFIER_KILL_SESSIONS", "8"))
_STEPS = int(os.environ.get("AMPLIFIER_KILL_STEPS", "5"))
_PAUSE = float(os.environ.get("AMPLIFIER_KILL_PAUSE", "4"))
_KILLS = int(os.environ.get("AMPLIFIER_KILLS", "3"))
_RESTARTS = int(os.environ.get("AMPLIFIER_KILL_RESTARTS", "1"))
_CUT = int(os.environ.get("AMPLIFIER_KILL_CUT", "8"))
_PERIOD = 3.0
_LIMIT = 120 + _SESSIONS * _STEPS * 0.5 + (_KILLS + _RESTARTS) * _PAUSE * 2

pytestmark = [
    pytest.mark.process,
    pytest.mark.figures,
    pytest.mark.timeout(_LIMIT * 2),
]


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
    """Worker processes, and the file that their tool writes in.

    Args:
        site: where they work.
        engine: their queue.
        steps: how many steps a turn takes.
        pause: seconds that a step takes.
        period: seconds after which others take over what a worker had.
    """

    site: Site
    engine: str
    steps: int = _STEPS
    pause: float = 0.2
    period: float = _PERIOD
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
        (packages / "sitecustomize.py").parent.mkdir(parents=True, exist_ok=True)
        (packages / "sitecustomize.py").write_text(CLOCK)
        write_effects(packages, self.site.home / "plan.json", self.steps)

    def hire(
        self, *, host: Host | None = None, clock: float = 0.0
    ) -> subprocess.Popen[bytes]:
        """Start a worker, on the other backend than the one before.

        Args:
            host: where it runs; default where the database is.
            clock: how many seconds its clock is wrong.
        """
        backend = ("asyncio", "trio")[len(self.workers) % 2]
        words = ["--engine", self.engine, "--store", self.site.store]
        prefix: Sequence[str] = ()
        if host is not None:
            prefix = host.prefix
            words = [re.sub("@[^/]+/", f"@{host.address}/", word) for word in words]
        words += ["--plan", str(self.site.home / "plan.json"), "--backend", backend]
        words += ["--period", str(self.period), "--name", f"worker-{len(self.workers)}"]
        environ = {
            **os.environ,
            "PYTHONPATH": str(self.site.home / "packages"),
            "EFFECTS": str(self.effects),
            "EFFECT_SECONDS": str(self.pause),
            "CLOCK": str(clock),
        }
        log = (self.site.home / f"worker-{len(self.workers)}.log").open("wb")
        with log:
            worker = subprocess.Popen(
                [*prefix, sys.executable, "-m", "amplifier", "worker", *words],
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
def fleet(made: Fleet) -> Iterator[Fleet]:
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
            as_object(as_object(entry.data).get("message"))
            for entry in said.entries
            if entry.kind == "message"
        ]
        answers = [each for each in messages if each["role"] == "assistant"]
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


@attrs.frozen(eq=False)
class Scene:
    """Turns in a queue, and the workers that run them.

    Args:
        fleet: the workers.
        store: where the sessions are.
        sessions: the sessions, each with a turn that is queued.
    """

    fleet: Fleet
    store: SessionStore
    sessions: list[str]

    async def ended(self) -> bool:
        """Wait until all turns have ended; return whether they did."""
        with anyio.move_on_after(_LIMIT):
            while True:  # the store may be restarted
                with suppress(StoreError):
                    if await _all_ended(self.store, self.sessions):
                        return True
                await anyio.sleep(0.2)
        return False

    async def begun(self) -> None:
        """Wait for the first effect."""
        with anyio.fail_after(60):
            while not self.fleet.effects.exists():  # noqa: ASYNC110  # another process writes it
                await anyio.sleep(0.05)

    async def holder(self, session_id: str | None = None) -> tuple[str, int | None]:
        """Return a session, and the number of the worker that has it; default the first that one has."""
        for each in self.sessions if session_id is None else [session_id]:
            owner = await self.store.holder(each)
            if owner is not None:
                return each, int(owner.rpartition("-")[2])
        return self.sessions[0], None

    async def require_sound(self, reported: str) -> None:
        """Require that nothing was lost or repeated."""
        begun = time.monotonic()
        has_ended = await self.ended()
        counts = await _count(self.store, self.fleet, self.sessions)
        seconds = time.monotonic() - begun
        row = f"{reported}: {len(self.sessions)} sessions, {_STEPS} steps, {seconds:.0f} s"
        print(f"{row}, {dict(counts)}", flush=True)  # noqa: T201  # a row of the table
        assert has_ended, self.fleet.logs()
        assert counts["lost"] == 0, self.fleet.logs()
        assert counts["repeated_effects"] == 0
        assert counts["repeated_answers"] == 0
        assert counts["missing"] == 0


@asynccontextmanager
async def queued(site: Site, number: int) -> AsyncIterator[Scene]:
    """Queue turns; workers are for the test to hire."""
    engine_url = site.store.replace("postgresql://", "dbos+postgresql://")
    with fleet(Fleet(site, engine_url)) as workers:
        secret = await site.token()
        engine = await open_named_engine(engine_url)
        stores = ServerStores(site.store, site.dirs)
        server = StoredServer(stores, workers.options, queue=engine)
        async with server.lifespan():
            caller = Caller(server, secret)
            sessions = []
            for at in range(number):
                session = await caller.begin()
                path = f"/sessions/{session}/turns"
                answer = await caller.post(path, {"prompt": f"Work {at}"})
                assert answer.status == 202, answer.body
                sessions.append(session)
            store = (await server.stores.tenant("default")).store
            yield Scene(workers, store, sessions)
        await engine.aclose()


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer
) -> Site:
    """The folder that is served, with sessions in the database."""
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.setenv("AMPLIFIER_HOME", str(home))
    monkeypatch.chdir(folder)
    return Site(folder, home, postgres.url())


async def test_killed_workers_lose_and_repeat_nothing(
    site: Site, postgres: PostgresServer
) -> None:
    async with queued(site, _SESSIONS) as scenario:
        for _ in range(_WORKERS):
            scenario.fleet.hire()
        await _disturb(scenario.fleet, postgres)
        reported = f"{_WORKERS} workers, {_KILLS} kills, {_RESTARTS} restarts"
        await scenario.require_sound(reported)


async def test_worker_paused_beyond_its_lease_writes_nothing(site: Site) -> None:
    async with queued(site, 1) as scenario:
        paused = scenario.fleet.hire()
        await scenario.begun()
        paused.send_signal(signal.SIGSTOP)
        scenario.fleet.hire()
        await scenario.require_sound("paused")
        (session,) = scenario.sessions
        logs: tuple[LogName, ...] = ("journal", "transcript", "events")
        before = [await scenario.store.read_log(session, log) for log in logs]
        effects = scenario.fleet.effects.read_text()
        paused.send_signal(signal.SIGCONT)
        await anyio.sleep(3 * _PERIOD)
        after = [await scenario.store.read_log(session, log) for log in logs]

        assert after == before
        assert scenario.fleet.effects.read_text() == effects


async def test_takeover_takes_three_periods_at_most_whatever_the_clocks_say(
    site: Site,
) -> None:
    async with queued(site, 2) as scenario:
        for clock in (600, -600):
            scenario.fleet.hire(clock=clock)
        await scenario.begun()
        session, victim = await scenario.holder()
        assert victim is not None
        scenario.fleet.workers[victim].kill()
        begun = time.monotonic()
        with anyio.fail_after(60):
            while await scenario.holder(session) != (session, 1 - victim):  # noqa: ASYNC110  # another process takes it
                await anyio.sleep(0.05)
        seconds = time.monotonic() - begun
        await scenario.require_sound(
            f"clocks 20 minutes apart, over in {seconds:.1f} s"
        )

        assert seconds <= 3 * _PERIOD


async def test_worker_without_database_hands_over(
    site: Site, postgres: PostgresServer
) -> None:
    async with host_of(postgres) as host, queued(site, 2) as scenario:
        scenario.fleet.hire(host=host)
        await scenario.begun()
        await host.cut()
        scenario.fleet.hire()
        await anyio.sleep(_CUT)
        await host.mend()
        await scenario.require_sound(f"{_CUT} s cut off ({host.kind})")
        effects = scenario.fleet.effects.read_text()
        await anyio.sleep(_PERIOD)

        assert scenario.fleet.effects.read_text() == effects


@pytest.mark.skipif(_CUT < 30, reason="nox -s turn_kills runs it")
async def test_worker_without_database_finishes_when_it_is_back(
    site: Site, postgres: PostgresServer
) -> None:
    async with host_of(postgres) as host, queued(site, 2) as scenario:
        scenario.fleet.hire(host=host)
        await scenario.begun()
        await host.cut()
        await anyio.sleep(_CUT)
        await host.mend()
        await scenario.require_sound(f"alone, {_CUT} s cut off ({host.kind})")


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
