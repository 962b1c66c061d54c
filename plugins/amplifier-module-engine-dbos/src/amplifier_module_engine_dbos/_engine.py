"""The engine: what an application calls, in whatever process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import sqlalchemy as sa
from anyio import to_thread
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.event import listen
from sqlalchemy.exc import ArgumentError

from amplifier_module_engine_dbos._runs import Runs
from amplifier_module_engine_dbos._tables import EngineDatabase
from amplifier_sdk.engines import Run, RunRequest, RunState, WorkerOptions, Workflow
from amplifier_sdk.errors import EngineError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["DBOSEngine", "open_engine"]

_DRIVERS: Final[Mapping[str, str]] = {
    "dbos+sqlite": "sqlite",
    "dbos+postgresql": "postgresql+psycopg",
}

_IDLE: Final = (
    "SELECT set_config(name, '10s', false) FROM pg_settings"
    " WHERE name = 'idle_in_transaction_session_timeout' AND setting = '0'"
)
"""What has PostgreSQL end the transaction of a process that is stopped in it: all others would wait for its locks.

DBOS sets it for connections of its own making alone. What the server or the URL says counts before it.
"""


@attrs.define(eq=False)
class DBOSEngine:
    """An engine on DBOS; `open_engine` opens it. It blocks in worker threads alone, so that it serves every backend."""

    _runs: Runs

    @property
    def database(self) -> EngineDatabase:
        """Where its runs are."""
        return self._runs.database

    async def start(self, request: RunRequest) -> None:
        """See `ExecutionEngine.start`."""
        await to_thread.run_sync(self._runs.start, request)

    async def send(self, run_id: str, event: str, value: JSONValue) -> None:
        """See `ExecutionEngine.send`."""
        await to_thread.run_sync(self._runs.send, run_id, event, value)

    async def cancel(self, run_id: str) -> None:
        """See `ExecutionEngine.cancel`."""
        await to_thread.run_sync(self._runs.cancel, run_id)

    async def find(self, run_id: str) -> Run | None:
        """See `ExecutionEngine.find`."""
        return await to_thread.run_sync(self._runs.find, run_id)

    async def runs(self, state: RunState, *, limit: int) -> tuple[Run, ...]:
        """See `ExecutionEngine.runs`."""
        return await to_thread.run_sync(self._runs.in_state, state, limit)

    async def work(
        self, workflows: Mapping[str, Workflow], options: WorkerOptions
    ) -> None:
        """See `ExecutionEngine.work`. DBOS is one to a process, and so is a worker.

        Limits of runs at once are the queue's: those of the worker that began last count for all.
        """
        # DBOS takes half a second to import, which who only starts runs waits for later
        from amplifier_module_engine_dbos._worker import EngineWorker

        await EngineWorker(self._runs, workflows, options).work()

    async def take_over(self) -> tuple[str, ...]:
        """See `ExecutionEngine.take_over`."""
        return await to_thread.run_sync(self._runs.take_over)

    async def aclose(self) -> None:
        """See `ExecutionEngine.aclose`."""
        await to_thread.run_sync(self._runs.database.engine.dispose)


async def open_engine(url: str, *, namespace: str) -> DBOSEngine:
    """Open an engine on a SQLite file, `dbos+sqlite:///FILE`, or a database, `dbos+postgresql://…`.

    The tables are made where they are missing.

    Args:
        url: where its runs are. A password stands in `PGPASSWORD` or `~/.pgpass`.
        namespace: whose runs are meant.

    Raises:
        EngineError: it cannot be opened; the message names the place and the reason.
    """
    return await to_thread.run_sync(partial(_open, url, namespace))


def _open(url: str, namespace: str) -> DBOSEngine:
    try:
        parsed = sa.make_url(url)
        driver = _DRIVERS[parsed.drivername]
    except (ArgumentError, KeyError) as error:
        known = ", ".join(f"{scheme}://" for scheme in _DRIVERS)
        raise EngineError(f"The URL of an engine begins with {known}") from error
    place = parsed.render_as_string(hide_password=True)
    if driver == "sqlite":
        if not parsed.database:
            raise EngineError(f"The engine at {place} needs a file")
        # Whoever can read the file can read prompts and results.
        file = Path(parsed.database)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        arguments = {"timeout": 30.0}
    else:
        arguments = {"connect_timeout": 10.0}
    engine = sa.create_engine(
        parsed.set(drivername=driver), connect_args=arguments, pool_pre_ping=True
    )
    if driver != "sqlite":
        listen(engine, "connect", _bound_idleness)
    database = EngineDatabase(engine, place)
    database.create()
    return DBOSEngine(Runs.open(database, namespace))


def _bound_idleness(connection: DBAPIConnection, _: object) -> None:
    """Bound how long a new connection may do nothing in a transaction."""
    # not by options at its start, which poolers between do not pass on
    cursor = connection.cursor()
    cursor.execute(_IDLE)
    cursor.close()
    # else the pool takes it back
    connection.commit()
