"""The suite of engines, on a SQLite file and on a PostgreSQL server."""

from __future__ import annotations

import pickle
from base64 import b64encode
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from uuid import uuid4

import anyio
import attrs
import pytest
import sqlalchemy as sa
from anyio import to_thread
from dbos import DBOSClient

from amplifier.testing.engines import EngineSubject, ExecutionEngineTests
from amplifier.testing.engines.behavior import settled, working
from amplifier.testing.postgres import PostgresServer
from amplifier_module_engine_dbos import DBOSEngine, open_engine
from amplifier_module_engine_dbos._runs import Runs
from amplifier_module_engine_dbos._tables import (
    RUNS,
    WORKERS,
    EngineDatabase,
    UnreachableError,
)
from amplifier_sdk import ExecutionEngine
from amplifier_sdk.engines import RunRequest, WorkerOptions, WorkflowContext
from amplifier_sdk.errors import EngineError
from amplifier_sdk.jsontypes import JSONValue

# the import of DBOS asks a program what kind of executable this is
pytestmark = pytest.mark.process


@attrs.frozen
class _Subject:
    """The runs of a namespace."""

    url: str
    namespace: str

    async def open(self) -> ExecutionEngine:
        """Open the engine on a queue that is there: DBOS looks for a new one once in a second."""
        engine = await open_engine(self.url, namespace=self.namespace)
        runs = Runs.open(engine.database, self.namespace)
        # a worker's own limits take the place of these
        register = partial(
            runs.client.register_queue,
            worker_concurrency=1,
            partition_concurrency=1,
            polling_interval_sec=0.1,
            on_conflict="never_update",
        )
        await to_thread.run_sync(register, runs.queue)
        return engine

    async def kill(self, engine: ExecutionEngine) -> None:
        """Let what the engine's worker has be a dead worker's: it returns what is its own, and finds nothing."""
        assert isinstance(engine, DBOSEngine)
        with engine.database.transaction() as connection:
            connection.execute(
                sa.update(RUNS)
                .where(RUNS.c.namespace == self.namespace, RUNS.c.state == "running")
                .values(worker="dead", fence=RUNS.c.fence + 1)
            )
            connection.execute(
                sa.insert(WORKERS).values(
                    namespace=self.namespace, name="dead", expires=1.0
                )
            )


class TestSQLite(ExecutionEngineTests):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> EngineSubject:
        return _Subject(f"dbos+sqlite:///{tmp_path}/engine.db", uuid4().hex)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("files", "begins with dbos"),
        ("sqlite:///x.db", "begins with dbos"),
        ("dbos+sqlite://", "needs a file"),
        ("dbos+postgresql://u:secret@127.0.0.1:1/x", "failed: .*refused"),
    ],
)
async def test_a_bad_url_is_one_error_without_the_password(
    url: str, problem: str
) -> None:
    with pytest.raises(EngineError, match=problem) as raised:
        await open_engine(url, namespace="n")

    assert "secret" not in str(raised.value)


async def test_a_process_has_one_worker_and_the_file_is_private(
    tmp_path: Path,
) -> None:
    url = f"dbos+sqlite:///{tmp_path}/engine.db"
    engine = await open_engine(url, namespace="n")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.work, {}, WorkerOptions(name="first"))
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(EngineError, match="one to a process"):
            await engine.work({}, WorkerOptions(name="second"))
        tasks.cancel_scope.cancel()
    await engine.aclose()

    assert (tmp_path / "engine.db").stat().st_mode & 0o077 == 0


async def test_old_run_of_low_priority_goes_before_a_new_one_of_a_high_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        order.append(context.run_id)
        return None

    engine = await open_engine(f"dbos+sqlite:///{tmp_path}/e.db", namespace="n")
    for run_id, priority, later in (
        ("old", 20, 0),
        ("low", 20, 1201),
        ("high", 0, 1201),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(EngineDatabase, "now", _now_after(later))
            request = RunRequest(run_id=run_id, workflow="w", priority=priority)
            await engine.start(request)
    async with working(engine, {"w": workflow}, max_runs=1, max_tenant_runs=1):
        await settled(engine, "low")
    await engine.aclose()

    assert order == ["old", "high", "low"]


def _now_after(seconds: float) -> Callable[[EngineDatabase, sa.Connection], float]:
    """Return a clock that is ahead."""
    now = EngineDatabase.now
    return lambda database, connection: now(database, connection) + seconds


async def test_worker_that_is_stopped_without_its_database_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DBOS asks a database that is gone again and again."""
    engine = await open_engine(f"dbos+sqlite:///{tmp_path}/e.db", namespace="n")

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        return context.run_id

    def gone(_database: EngineDatabase) -> AbstractContextManager[sa.Connection]:
        raise UnreachableError("it is gone")

    def asked(*_args: object, **_options: object) -> None:
        raise AssertionError("DBOS was asked")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.work, {"w": workflow}, WorkerOptions(name="w"))
            await engine.start(RunRequest(run_id="r1", workflow="w"))
            await settled(engine, "r1")
            monkeypatch.setattr(EngineDatabase, "transaction", gone)
            monkeypatch.setattr(DBOSClient, "list_workflows", asked)
            tasks.cancel_scope.cancel()
    await engine.aclose()


async def test_a_run_is_not_lost_whose_worker_dies_before_it_takes_it(
    tmp_path: Path,
) -> None:
    """DBOS holds the segment for running already, and this engine for queued still."""

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        return context.run_id

    engine = await open_engine(f"dbos+sqlite:///{tmp_path}/e.db", namespace="n")
    await engine.start(RunRequest(run_id="r1", workflow="w"))
    with engine.database.transaction() as connection:
        claimed = sa.text(
            "UPDATE workflow_status SET status = 'PENDING', executor_id = 'dead'"
        )
        assert connection.execute(claimed).rowcount == 1
        dead = {"namespace": "n", "name": "dead", "expires": 1.0}
        connection.execute(sa.insert(WORKERS).values(**dead))

    assert await engine.take_over() == ("r1",)
    assert await engine.take_over() == ()
    async with working(engine, {"w": workflow}):
        run = await settled(engine, "r1")
    assert run.result == "r1"
    await engine.aclose()


class _Touching:
    """Makes a file when it is read back from a pickle."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self._path,)


async def test_a_pickle_in_the_database_runs_nothing(tmp_path: Path) -> None:
    """DBOS reads what a row says that it is, whatever serializer it was given."""
    ran = tmp_path / "ran"
    engine = await open_engine(f"dbos+sqlite:///{tmp_path}/e.db", namespace="n")
    await engine.start(RunRequest(run_id="altered", workflow="w"))
    pickled = b64encode(pickle.dumps({"args": (_Touching(ran),), "kwargs": {}}))
    read = sa.text("SELECT status FROM workflow_status")
    with engine.database.transaction() as connection:
        connection.execute(
            sa.text("UPDATE workflow_status SET serialization = 'py_pickle'")
        )
        connection.execute(
            sa.text("UPDATE workflow_input SET inputs = :inputs"),
            {"inputs": pickled.decode()},
        )

    async with working(engine, {}):
        with anyio.fail_after(15):
            status = ""
            while status != "ERROR":
                await anyio.sleep(0.05)
                with engine.database.transaction() as connection:
                    status = connection.execute(read).scalar_one()
    assert not ran.exists()
    await engine.aclose()


class TestPostgreSQL(ExecutionEngineTests):
    @pytest.fixture
    def subject(self, server: PostgresServer) -> EngineSubject:
        return _Subject(f"dbos+{server.url()}", uuid4().hex)


async def test_an_idle_transaction_is_ended_and_is_retried_later(
    server: PostgresServer,
) -> None:
    """Others would wait for its locks: by default for ten seconds, and for what its URL says before that."""
    url = f"dbos+{server.url()}"
    other = await open_engine(url, namespace="n")
    option = "idle_in_transaction_session_timeout"
    engine = await open_engine(f"{url}?options=-c%20{option}%3D500", namespace="n")
    assert isinstance(other, DBOSEngine)
    assert isinstance(engine, DBOSEngine)
    idle = sa.text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE state = 'idle in transaction' AND pid <> pg_backend_pid()"
    )

    def count_idle() -> int:
        with other.database.transaction() as connection:
            limit = connection.execute(sa.text(f"SHOW {option}")).scalar_one()
            assert limit == "10s"
            return int(connection.execute(idle).scalar_one())

    def be_idle() -> None:
        with engine.database.transaction() as connection:
            connection.execute(sa.text("SELECT 1"))
            assert count_idle()
            while count_idle():
                pass
            connection.execute(sa.text("SELECT 1"))

    with pytest.raises(UnreachableError):
        await anyio.to_thread.run_sync(be_idle)
    for each in (engine, other):
        await each.aclose()
