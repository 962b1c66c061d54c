"""Workers that are killed, paused and cut off from their database: no run is lost and no finished step repeated."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import anyio
import attrs
import pytest

from amplifier.testing.engines.behavior import settled
from amplifier.testing.postgres import PostgresServer
from amplifier_module_engine_dbos import open_engine
from amplifier_sdk.engines import ExecutionEngine, RunRequest

_PROGRAM = Path(__file__).with_name("worker_program.py")
_STEPS = int(os.environ.get("AMPLIFIER_KILL_STEPS", "6"))
_RUNS = int(os.environ.get("AMPLIFIER_KILL_RUNS", "12"))
_KILLS = int(os.environ.get("AMPLIFIER_KILLS", "4"))
_AT_ONCE = 4
"""Runs that `worker_program.py` has at once."""

_LIMIT = 60 + _RUNS * _STEPS * 0.2 + _KILLS
"""Seconds for all runs."""

pytestmark = [
    pytest.mark.process,
    pytest.mark.figures,
    pytest.mark.timeout(_LIMIT * 2),
]


@attrs.define
class Fleet:
    """Workers, and what they noted."""

    url: str
    namespace: str
    file: Path
    seconds: float
    workers: list[subprocess.Popen[bytes]] = attrs.field(factory=list)

    def hire(self, statement: str = "") -> subprocess.Popen[bytes]:
        """Start a worker, on the other backend than the one before; it stops itself at a statement."""
        backend = ("asyncio", "trio")[len(self.workers) % 2]
        words = (
            *(backend, self.url, self.namespace, str(self.file)),
            *(str(_STEPS), str(self.seconds), statement),
        )
        worker = subprocess.Popen([sys.executable, str(_PROGRAM), *words])
        self.workers.append(worker)
        return worker

    def alive(self) -> list[subprocess.Popen[bytes]]:
        """Return those that were not killed."""
        return [each for each in self.workers if each.poll() is None]

    def lines(self) -> list[str]:
        """Return what was noted."""
        return self.file.read_text("utf-8").splitlines() if self.file.exists() else []

    def under_way(self) -> int:
        """Count the steps that began and have not ended."""
        words = [line.partition(" ") for line in self.lines()]
        begun, ended = (
            {step for word, _, step in words if word == each}
            for each in ("began", "ended")
        )
        return len(begun - ended)

    def count(self) -> Counter[str]:
        """Count what became of the steps."""
        ended: set[str] = set()
        counts: Counter[str] = Counter(repeated=0, interrupted=0, steps=0)
        began: set[str] = set()
        for line in self.lines():
            word, _, step = line.partition(" ")
            if word == "began":
                counts["repeated"] += step in ended
                counts["interrupted"] += step in began - ended
                began.add(step)
            elif word == "ended":
                ended.add(step)
        # a process that is ended or stopped may have recorded a step and not noted it
        counts["steps"] = len(began)
        return counts


@contextmanager
def fleet(url: str, file: Path, *, seconds: float = 0.05) -> Iterator[Fleet]:
    """Yield workers whose steps take so long, none of which is left."""
    made = Fleet(url, uuid4().hex, file, seconds)
    try:
        yield made
    finally:
        for worker in made.workers:
            worker.kill()
            worker.wait()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # processes report in a file
        await anyio.sleep(0.05)


async def _start(engine: ExecutionEngine) -> None:
    for run in range(_RUNS):
        await engine.start(
            RunRequest(run_id=f"r{run}", workflow="steps", tenant=f"t{run % 3}")
        )


async def _begin(engine: ExecutionEngine, workers: Fleet, number: int) -> None:
    await _start(engine)
    for _ in range(number):
        workers.hire()
    await _until(lambda: any(line.startswith("ended") for line in workers.lines()))


async def _pause_in_steps(worker: subprocess.Popen[bytes], workers: Fleet) -> None:
    """Pause a worker while a step of each of its runs is under way.

    Between the look whether it still has a run and the step itself nothing could keep it from the step.
    """
    while True:
        os.kill(worker.pid, signal.SIGSTOP)
        os.waitpid(worker.pid, os.WUNTRACED)  # until it stands
        if workers.under_way() == _AT_ONCE:
            return
        os.kill(worker.pid, signal.SIGCONT)
        await anyio.sleep(0.02)


async def _require_all(engine: ExecutionEngine, workers: Fleet, reported: str) -> None:
    with anyio.fail_after(_LIMIT):
        for run in range(_RUNS):
            await settled(engine, f"r{run}")
    counts = workers.count()
    print(f"{reported}: {_RUNS} runs, {dict(counts)}")  # noqa: T201  # a row of the table
    finished = await engine.runs("finished", limit=_RUNS)
    assert [run.result for run in finished] == [[*range(_STEPS)]] * _RUNS
    assert counts["repeated"] == 0
    assert counts["steps"] == _RUNS * _STEPS


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_killed_workers(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"dbos+sqlite:///{tmp_path}/engine.db"
    if kind == "postgresql":
        server: PostgresServer = request.getfixturevalue("server")
        url = f"dbos+{server.url()}"
    chosen = random.Random(7)  # the same victims each time
    with fleet(url, tmp_path / "log") as workers:
        engine = await open_engine(url, namespace=workers.namespace)
        await _begin(engine, workers, 3)
        for _ in range(_KILLS):
            await anyio.sleep(0.3)
            victim = chosen.choice(workers.alive())
            victim.kill()
            victim.wait()
            workers.hire()
        await _require_all(engine, workers, f"{kind}, {_KILLS} kills")
        await engine.aclose()


async def test_a_worker_that_is_paused_beyond_its_period(
    server: PostgresServer, tmp_path: Path
) -> None:
    url = f"dbos+{server.url()}"
    with fleet(url, tmp_path / "log", seconds=0.3) as workers:
        engine = await open_engine(url, namespace=workers.namespace)
        await _begin(engine, workers, 1)
        (paused,) = workers.workers
        await _pause_in_steps(paused, workers)
        workers.hire()
        await _require_all(engine, workers, "paused")
        before = workers.count()
        os.kill(paused.pid, signal.SIGCONT)
        await anyio.sleep(1)
        paused.terminate()
        paused.wait()
        assert workers.count()["repeated"] == before["repeated"]
        await _require_all(engine, workers, "resumed")
        await engine.aclose()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO amplifier_run_steps",
        "UPDATE dbos.workflow_status SET status=%(status)s::VARCHAR, executor_id",
    ],
    ids=["step", "queue"],
)
async def test_a_worker_that_is_stopped_in_a_transaction(
    statement: str, server: PostgresServer, tmp_path: Path
) -> None:
    """What it has locked keeps nobody waiting, and it works again when it continues."""
    url = f"dbos+{server.url()}"
    with fleet(url, tmp_path / "log") as workers:
        engine = await open_engine(url, namespace=workers.namespace)
        await _start(engine)
        stopped = workers.hire(statement)
        await anyio.to_thread.run_sync(os.waitpid, stopped.pid, os.WUNTRACED)
        other = workers.hire()
        await _require_all(engine, workers, "stopped")
        other.kill()
        other.wait()
        stopped.send_signal(signal.SIGCONT)
        await engine.start(RunRequest(run_id="last", workflow="steps"))
        with anyio.fail_after(_LIMIT):
            last = await settled(engine, "last")
        await engine.aclose()

    assert last.result == [*range(_STEPS)]


async def test_a_server_that_is_restarted(
    server: PostgresServer, tmp_path: Path
) -> None:
    url = f"dbos+{server.url()}"
    with fleet(url, tmp_path / "log") as workers:
        engine = await open_engine(url, namespace=workers.namespace)
        await _begin(engine, workers, 2)
        for _ in range(2):
            await anyio.to_thread.run_sync(server.stop)
            await anyio.to_thread.run_sync(server.start)
            await anyio.sleep(0.3)
        await engine.aclose()
        engine = await open_engine(url, namespace=workers.namespace)
        await _require_all(engine, workers, "server restarted twice")
        await engine.aclose()
