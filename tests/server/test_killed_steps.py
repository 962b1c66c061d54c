"""One session whose workers are killed with `kill -9` in one step after another: none is lost, and none comes twice.

`nox -s turn_kills` kills a thousand of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import cattrs
import pytest
from anyio import to_thread

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.server.application import StoredServer
from amplifier.server.records import turns_of
from amplifier.server.stores import ServerStores
from amplifier.testing.engines import InMemoryEngine
from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.loops.notices import IN_DOUBT
from amplifier_sdk.stores import SessionStore
from tests.server.effects import write_effects
from tests.server.killed_workers import MOMENTS, WRITES, KillPoint, Order, Outcome
from tests.server.serving import Site
from tests.serving.client import Caller

_KILLS: Final = int(os.environ.get("AMPLIFIER_STEP_KILLS", "15"))
_STEPS: Final = _KILLS + 5
_BACKENDS: Final = ("asyncio", "trio")
_ROOT: Final = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.process,
    pytest.mark.figures,
    pytest.mark.timeout(120 + _KILLS * 3),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Name the backend of the test's own process; its workers take turns."""
    return "asyncio"


def kill_points() -> list[tuple[KillPoint, str]]:
    """Return a point of each step, and the event loop there: all writes, at all moments, on both."""
    kinds = [(write, moment) for moment in MOMENTS for write in WRITES]
    points = [KillPoint(step, *kinds[step % len(kinds)]) for step in range(_KILLS)]
    # their number is odd: each kind comes on both in turn
    return [(point, _BACKENDS[point.step % 2]) for point in points]


@attrs.frozen(eq=False)
class Workers:
    """The process that forks workers, each of which is killed."""

    process: subprocess.Popen[str]

    async def run(self, order: Order) -> Outcome:
        """Start one, and wait for its end."""
        answer = await to_thread.run_sync(self._run, order)
        return cattrs.structure(json.loads(answer), Outcome)

    def _run(self, order: Order) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(cattrs.unstructure(order))}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


@contextmanager
def workers(site: Site) -> Iterator[Workers]:
    path = os.pathsep.join((str(site.home / "packages"), str(_ROOT)))
    effects = str(site.home / "effects.log")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.server.killed_workers"],
        cwd=site.folder,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "EFFECTS": effects,
            "EFFECT_SECONDS": "0.04",  # events of a step are written within it
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Workers(process)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with running_server(programs) as server:
        yield server.url()


async def test_workers_killed_step_by_step_lose_and_repeat_nothing(
    site: Site, database: str
) -> None:
    site = attrs.evolve(site, store=database)
    write_effects(site.home / "packages", site.home / "plan.json", _STEPS)
    secret = await site.token()
    server = StoredServer(
        ServerStores(database, site.dirs),
        PlanOptions(file=site.home / "plan.json"),
        queue=InMemoryEngine(),
    )
    begun = time.monotonic()
    async with server.lifespan():
        caller = Caller(server, secret)
        session = await caller.begin()
        answer = await caller.post(f"/sessions/{session}/turns", {"prompt": "Go"})
        tenant = await server.stores.tenant("default")
        turn = {
            "tenant": "default",
            "session_id": session,
            "turn_id": str(answer.json["turn_id"]),
        }
        order = Order(
            home=str(site.home),
            folder=str(site.folder),
            store=database,
            turn=turn,
            backend="asyncio",
        )
        outcomes = []
        with workers(site) as all_:
            for point, backend in kill_points():
                ends = attrs.evolve(order, point=point, backend=backend)
                outcomes.append(await all_.run(ends))
                lease = outcomes[-1].lease
                assert lease is not None
                # as its end does, a period later
                await tenant.store.release(lease)
            last = await all_.run(order)
        ended = await _ended(tenant.store, session)
    effects = (site.home / "effects.log").read_text().splitlines()
    seconds = time.monotonic() - begun
    doubtful = _require_sound(ended, Counter(effects))
    _require_killed(outcomes, doubtful)
    print(  # noqa: T201  # a row of the table
        f"\n{len(outcomes)} workers killed in one turn of {_STEPS} steps, {seconds:.0f} s:"
        f" {len(effects)} effects, {len(doubtful)} calls in doubt"
    )

    assert last == Outcome(signal=0)


async def _ended(store: SessionStore, session: str) -> Sequence[JSONObject]:
    """Return what was said in a turn that finished."""
    record = await store.read_record(session)
    assert record is not None
    assert turns_of(record)[-1]["state"] == "finished"
    said = await store.read_log(session, "transcript")
    return [
        as_object(as_object(entry.data)["message"])
        for entry in said.entries
        if entry.kind == "message"
    ]


def _require_sound(messages: Sequence[JSONObject], effects: Counter[str]) -> set[int]:
    """Require that each step came once; return those that are in doubt."""
    answers = [each for each in messages if each["role"] == "assistant"]
    results = [each for each in messages if each["role"] == "tool"]
    doubtful = {step for step, each in enumerate(results) if IN_DOUBT in str(each)}
    done = {int(line.rpartition(" ")[2]) for line in effects}

    assert len(answers) == _STEPS + 1
    assert len(results) == _STEPS
    assert set(effects.values()) == {1}
    assert {*range(_STEPS)} - done <= doubtful
    for step, each in enumerate(results):
        assert step in doubtful or f"done {step}" in str(each)
    return doubtful


def _require_killed(outcomes: Sequence[Outcome], doubtful: set[int]) -> None:
    """Require that each worker was killed where it should be, and that what it left in doubt is."""
    reached = [each.reached for each in outcomes if each.reached is not None]
    steps = [each.step for each in reached]
    between = {
        each.step
        for each in reached
        if (each.write, each.moment)
        in {("call_started", "after"), ("call_finished", "before")}
    }
    may_be = {
        each.step
        for each in reached
        if each.moment == "during" or each.write == "events"
    }

    assert {each.signal for each in outcomes} == {signal.SIGKILL}
    assert len(reached) == _KILLS
    assert steps == sorted(steps)
    assert len({*steps}) > 0.8 * _KILLS
    assert between <= doubtful <= between | may_be
