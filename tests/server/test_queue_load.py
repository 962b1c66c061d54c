"""What a queue of turns costs: how many a second, how long they wait, and what those hold that wait for a person.

`nox -s serve_load` runs it in full.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import anyio
import attrs
import psycopg
import pytest

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.server.application import StoredServer
from amplifier.server.engines import open_named_engine
from amplifier.server.stores import ServerStores
from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from amplifier_kit.files.appendlog import decode_line
from amplifier_sdk.engines import ExecutionEngine, RunState
from tests.server.serving import WRITES, Site
from tests.server.test_load import resident
from tests.server.test_worker_kills import Fleet, fleet
from tests.serving.client import Caller

TURNS: Final = int(os.environ.get("AMPLIFIER_QUEUED_TURNS", "6"))
QUESTIONS: Final = int(os.environ.get("AMPLIFIER_QUESTIONS", "12"))
STEPS: Final = int(os.environ.get("AMPLIFIER_LONG_STEPS", "60"))
PER_TOKEN: Final = 50
WARM: Final = 4
WINDOW: Final = min(100, STEPS // 6)
SECONDS: Final = 60 + TURNS + QUESTIONS + STEPS * 0.1

pytestmark = [
    pytest.mark.process,
    pytest.mark.figures,
    pytest.mark.timeout(SECONDS * 4),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Name the backend of the test's own process; its workers take turns."""
    return "asyncio"


@pytest.fixture
def shared(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The folder that is served, with sessions in a database."""
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with running_server(programs) as server:
        yield attrs.evolve(site, store=server.url())


@attrs.frozen(eq=False)
class Queue:
    """A server in this process that has its turns run by workers.

    Args:
        fleet: the workers.
        engine: the queue.
        server: the server.
        secrets: tokens, each for a number of turns.
    """

    fleet: Fleet
    engine: ExecutionEngine
    server: StoredServer
    secrets: Sequence[str]

    async def begin(self, number: int) -> str:
        """Begin a session with a turn; return its id."""
        caller = Caller(self.server, self.secrets[number // PER_TOKEN])
        session = await caller.begin()
        path = f"/sessions/{session}/turns"
        answer = await caller.post(path, {"prompt": "Go"})
        assert answer.status == 202, answer.body
        return session

    async def until(self, state: RunState, count: int) -> None:
        """Wait until so many turns are in a state."""
        with anyio.fail_after(SECONDS):
            while len(await self.engine.runs(state, limit=count)) < count:  # noqa: ASYNC110  # other processes run them
                await anyio.sleep(0.05)


@asynccontextmanager
async def queue(workers: Fleet, turns: int, hired: int) -> AsyncIterator[Queue]:
    """Run a server and workers, which have run a few turns."""
    site = workers.site
    tokens = range(1 + (turns + WARM) // PER_TOKEN)
    secrets = [await site.token(f"t{number}", "operator") for number in tokens]
    engine = await open_named_engine(workers.engine)
    options = PlanOptions(file=site.home / "plan.json")
    server = StoredServer(ServerStores(site.store, site.dirs), options, queue=engine)
    async with server.lifespan():
        for _ in range(hired):
            workers.hire()
        yield Queue(workers, engine, server, secrets)
    await engine.aclose()


def workers_of(site: Site, *, steps: int) -> Fleet:
    engine = site.store.replace("postgresql://", "dbos+postgresql://")
    return Fleet(site, engine, steps=steps, pause=0, period=15)


async def test_turns_of_new_sessions_are_taken_from_the_queue(shared: Site) -> None:
    with fleet(workers_of(shared, steps=1)) as workers:
        async with queue(workers, 2 * TURNS, 2) as turns:
            for number in range(WARM):
                await turns.begin(number)
            await turns.until("finished", WARM)
            begun = time.monotonic()
            for number in range(TURNS):
                await turns.begin(WARM + number)
            await turns.until("finished", WARM + TURNS)
            rate = TURNS / (time.monotonic() - begun)
            for number in range(TURNS):
                await turns.begin(WARM + TURNS + number)
                await anyio.sleep(2 / rate)  # half of what they can do
            await turns.until("finished", WARM + 2 * TURNS)
    waits = _waits(shared.store)[-TURNS:]
    p99 = quantiles(waits, n=100)[-1]
    print(  # noqa: T201  # the figures
        f"\n2 workers: {rate:.1f} sessions a second with a turn of one call each; at half"
        f" of that a turn waits {median(waits) * 1e3:.0f} ms (median), {p99 * 1e3:.0f} ms (p99);"
        f" load {os.getloadavg()[0]:.0f}"
    )
    assert len(waits) == TURNS
    assert p99 < 10


def _waits(url: str) -> list[float]:
    """Return the seconds that each turn waited in the queue, the first one first."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT (started_at_epoch_ms - created_at) / 1000.0"
            " FROM dbos.workflow_status ORDER BY created_at"
        )
        return [float(seconds) for (seconds,) in found]


async def test_turns_that_wait_for_a_person_hold_nothing_of_a_worker(
    shared: Site,
) -> None:
    with fleet(workers_of(shared, steps=1)) as workers:
        shared.plan(*WRITES)
        async with queue(workers, QUESTIONS, 1) as turns:
            for number in range(WARM):
                await turns.begin(number)
            await turns.until("waiting", WARM)
            (worker,) = workers.workers
            before = _held(worker.pid)
            for number in range(QUESTIONS):
                await turns.begin(WARM + number)
            await turns.until("waiting", WARM + QUESTIONS)
            after = _held(worker.pid)
    print(  # noqa: T201  # the figures
        f"\n{QUESTIONS} turns that wait for a person: a worker has {before[0]} MB and"
        f" {before[1]} threads before, {after[0]} MB and {after[1]} threads with them"
    )
    assert after[0] - before[0] < 12
    assert after[1] < 60  # those of its pools


def _held(pid: int) -> tuple[int, int]:
    """Return the memory of a process in megabytes, and its threads."""
    return resident(pid), len([*Path(f"/proc/{pid}/task").iterdir()])


async def test_a_step_costs_the_same_behind_many_others(shared: Site) -> None:
    with fleet(workers_of(shared, steps=STEPS)) as workers:
        async with queue(workers, 1, 1) as turns:
            session = await turns.begin(0)
            await turns.until("finished", 1)
    times = _times(shared.store, session)
    part = STEPS // 3
    first, last = _windows(times[10 : 10 + part]), _windows(times[-part:])
    # those that others on this machine disturbed least
    early, late = min(first), min(last)
    print(  # noqa: T201  # the figures
        f"\na step of a turn of {STEPS}: {early * 1e3:.1f} ms in its first third,"
        f" {late * 1e3:.1f} ms in its last; load {os.getloadavg()[0]:.0f}"
    )
    assert len(times) == STEPS
    # events that waited for the store have one time
    assert late < 3 * median(first)


def _windows(times: Sequence[float]) -> list[float]:
    """Return the seconds of a step in one window of steps after another."""
    windows = [times[at : at + WINDOW] for at in range(0, len(times), WINDOW)]
    whole = [each for each in windows if len(each) == WINDOW]
    return [(each[-1] - each[0]) / (WINDOW - 1) for each in whole]


def _times(url: str, session: str) -> list[float]:
    """Return when each call of a session began."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT line FROM amplifier.entries"
            " WHERE session_id = %s AND log = 'events' ORDER BY number",
            (session,),
        )
        records = [decode_line(line.encode()) for (line,) in found]
    return [each.at for each in records if each.kind == "tool_started"]
