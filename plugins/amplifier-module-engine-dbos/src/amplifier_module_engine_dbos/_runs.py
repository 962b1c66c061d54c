"""The changes of runs: each one transaction over this engine's tables and DBOS's queue. They block."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from amplifier_module_engine_dbos._tables import (
    EVENTS,
    RUNS,
    STEPS,
    WORKERS,
    EngineDatabase,
    read_run,
)
from amplifier_sdk.engines import Run, RunRequest, RunState
from amplifier_sdk.errors import EngineError, RunLostError
from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

__all__ = ["APPLICATION", "SEGMENT", "VERSION", "Held", "Outcome", "Runs"]

APPLICATION: Final = "amplifier"
SEGMENT: Final = "amplifier.segment"

VERSION: Final = "1"
"""Of what DBOS records of a segment: the same for every release, else an update would orphan the runs."""

Outcome: TypeAlias = tuple[JSONValue, str | None]
"""What a step returned, and the problem where it raised one instead."""

_EPOCH: Final = 1_767_225_600
"""2026 in seconds since the epoch: DBOS's priorities have 31 bits, which lasts until 2094."""

_MINUTE: Final = 60
_OVER: Final = ("finished", "failed", "cancelled")


@attrs.frozen(kw_only=True)
class Held:
    """A run that a worker has, by its number and the fence that it was given."""

    number: int
    fence: int
    request: RunRequest


@attrs.frozen(eq=False)
class Runs:
    """The runs of a namespace.

    Args:
        database: where they are.
        namespace: whose they are.
        client: DBOS's side of the same database.
    """

    database: EngineDatabase
    namespace: str
    client: DBOSClient

    @property
    def queue(self) -> str:
        """The name of the namespace's queue: a worker of one takes nothing of another's."""
        return f"amplifier-{sha256(self.namespace.encode()).hexdigest()[:32]}"

    @classmethod
    def open(cls, database: EngineDatabase, namespace: str) -> Runs:
        """Open the runs of a namespace."""
        # it takes half a second to import
        from dbos import DBOSClient

        from amplifier_module_engine_dbos._json import JSONSerializer

        client = DBOSClient(
            system_database_engine=database.engine,
            serializer=JSONSerializer(),
            application_name=APPLICATION,
            lazy=True,
        )
        return cls(database, namespace, client)

    def start(self, request: RunRequest) -> None:
        """Insert a run and queue its first segment."""
        row = {
            "namespace": self.namespace,
            "run_id": request.run_id,
            "workflow": request.workflow,
            "argument": _dump(request.argument),
            "tenant": request.tenant,
            "priority": request.priority,
            "state": "queued",
            "segment": 0,
            "fence": 0,
            "result": "null",
        }
        with self.database.transaction() as connection:
            if self._insert(connection, RUNS, row):
                self._enqueue(connection, request, 0)

    def find(self, run_id: str) -> Run | None:
        """Return how a run stands."""
        with self.database.transaction() as connection:
            row = connection.execute(self._select(run_id)).one_or_none()
        return None if row is None else read_run(row)

    def in_state(self, state: RunState, limit: int) -> tuple[Run, ...]:
        """Return the runs of a state, the oldest first."""
        query = (
            sa.select(RUNS)
            .where(RUNS.c.namespace == self.namespace, RUNS.c.state == state)
            .order_by(RUNS.c.number)
            .limit(limit)
        )
        with self.database.transaction() as connection:
            return tuple(map(read_run, connection.execute(query)))

    def send(self, run_id: str, event: str, value: JSONValue) -> None:
        """Store an event, and wake the run that waits for it."""
        with self.database.transaction() as connection:
            number = self._lock(connection, run_id)
            row = {"number": number, "name": event, "value": _dump(value)}
            self._insert(connection, EVENTS, row)
            found = connection.execute(self._select(run_id)).one()
            if found.state == "waiting" and found.waits_for == event:
                self._wake(connection, found)

    def cancel(self, run_id: str) -> None:
        """Cancel a run; whoever runs it finds out within a tenth of a second."""
        with self.database.transaction() as connection:
            number = self._lock(connection, run_id)
            connection.execute(
                sa.update(RUNS)
                .where(RUNS.c.number == number, RUNS.c.state.not_in(_OVER))
                .values(state="cancelled", waits_for=None)
            )

    def take(self, run_id: str, segment: int, worker: str) -> Held | None:
        """Let a worker have a segment that it dequeued; `None` where it is over, or a later one is there."""
        with self.database.transaction() as connection:
            row = connection.execute(
                sa.update(RUNS)
                .where(
                    *self._of(run_id),
                    RUNS.c.segment == segment,
                    RUNS.c.state.in_(("queued", "running")),
                )
                .values(state="running", worker=worker, fence=RUNS.c.fence + 1)
                .returning(RUNS)
            ).one_or_none()
        if row is None:
            return None
        return Held(number=row.number, fence=row.fence, request=read_run(row).request)

    def is_held(self, held: Held) -> bool:
        """Tell whether a worker still has a run."""
        query = sa.select(RUNS.c.number).where(*_holding(held))
        with self.database.transaction() as connection:
            return connection.execute(query).one_or_none() is not None

    def end(self, held: Held, *, result: JSONValue, problem: str | None) -> None:
        """Record how a run ended, if the worker still has it."""
        state = "finished" if problem is None else "failed"
        change = {"state": state, "result": _dump(result), "problem": problem}
        with self.database.transaction() as connection:
            connection.execute(sa.update(RUNS).where(*_holding(held)).values(**change))

    def step(self, held: Held, name: str) -> Outcome | None:
        """Return how a step ended; `None` where it has not.

        Raises:
            RunLostError: another worker has the run, or it is over.
        """
        with self.database.transaction() as connection:
            self._require(connection, held)
            return _outcome(connection, held, name)

    def record(self, held: Held, name: str, outcome: Outcome) -> None:
        """Record how a step ended.

        Raises:
            RunLostError: another worker has the run, or it is over; nothing is recorded.
        """
        value, problem = outcome
        row = {"number": held.number, "name": name}
        with self.database.transaction() as connection:
            # The row's lock is held to the end: nobody takes the run over in between.
            self._require(connection, held)
            self._insert(
                connection, STEPS, {**row, "value": _dump(value), "problem": problem}
            )

    def event(self, held: Held, name: str, timeout: float | None) -> Outcome | None:
        """Return the value of an event; where it has not come, let the run wait for it and return `None`.

        Raises:
            RunLostError: another worker has the run, or it is over.
        """
        query = sa.select(EVENTS.c.value).where(
            EVENTS.c.number == held.number, EVENTS.c.name == name
        )
        with self.database.transaction() as connection:
            # Whoever sends an event takes this lock as well: it comes before or after.
            self._require(connection, held)
            value = connection.execute(query).scalar_one_or_none()
            wakes = None
            if value is None and timeout is not None:
                now = self.database.now(connection)
                wakes = self._deadline(connection, held, name, now + timeout)
                if wakes <= now:
                    # recorded, so that an event that comes too late changes nothing
                    value = "null"
                    row = {"number": held.number, "name": name, "value": value}
                    self._insert(connection, EVENTS, row)
            if value is not None:
                return json.loads(value), None
            connection.execute(
                sa.update(RUNS)
                .where(RUNS.c.number == held.number)
                .values(state="waiting", waits_for=name, wakes=wakes)
            )
        return None

    def _deadline(
        self, connection: sa.Connection, held: Held, name: str, deadline: float
    ) -> float:
        """Return when an event is not waited for any more, as it was said first."""
        name = f"until {name}"
        known = _outcome(connection, held, name)
        if known is not None and isinstance(known[0], float):
            return known[0]
        row = {"number": held.number, "name": name, "value": _dump(deadline)}
        self._insert(connection, STEPS, row)
        return deadline

    def beat(self, worker: str, period: float) -> bool:
        """Say that a worker lives; return whether it is the elected one: the first by name."""
        with self.database.transaction() as connection:
            now = self.database.now(connection)
            row = {"namespace": self.namespace, "name": worker, "expires": now + period}
            self._insert(connection, WORKERS, row)
            connection.execute(
                sa.update(WORKERS)
                .where(WORKERS.c.namespace == self.namespace, WORKERS.c.name == worker)
                .values(expires=now + period)
            )
            query = sa.select(sa.func.min(WORKERS.c.name)).where(
                WORKERS.c.namespace == self.namespace, WORKERS.c.expires > now
            )
            return str(connection.execute(query).scalar_one()) == worker

    def take_over(self) -> tuple[str, ...]:
        """Queue what dead workers had, and wake whose time has come."""
        with self.database.transaction() as connection:
            query = sa.select(WORKERS.c.name).where(
                WORKERS.c.namespace == self.namespace,
                WORKERS.c.expires <= self.database.now(connection),
            )
            dead = connection.execute(query).scalars().all()
        woken = [run_id for worker in dead for run_id in self.leave(worker)]
        with self.database.transaction() as connection:
            now = self.database.now(connection)
            due = connection.execute(
                sa.select(RUNS)
                .where(
                    RUNS.c.namespace == self.namespace,
                    RUNS.c.state == "waiting",
                    RUNS.c.wakes <= now,
                )
                .with_for_update(skip_locked=True)
            )
            for row in due.all():
                self._wake(connection, row)
                woken.append(row.run_id)
        return tuple(woken)

    def leave(self, worker: str) -> list[str]:
        """Queue what a worker has that works no more, each as a new segment; return the ids.

        Whoever is killed in between leaves the worker in its table, and the next one does the rest.

        Raises:
            UnreachableError: the database does not answer.
        """
        # DBOS would ask a database that is gone again and again, and never return
        with self.database.transaction():
            pass
        segments = self.client.list_workflows(
            status="PENDING", executor_id=worker, load_input=False, load_output=False
        )
        pending = [each.workflow_id for each in segments]
        has_run = sa.and_(RUNS.c.worker == worker, RUNS.c.state == "running")
        query = sa.select(RUNS).where(RUNS.c.namespace == self.namespace)
        returned: list[str] = []
        with self.database.transaction() as connection:
            rows = connection.execute(query.where(has_run).with_for_update()).all()
            # It may have died after it dequeued a segment and before it took the run.
            for workflow_id in pending:
                namespace, run_id, segment = json.loads(workflow_id)
                is_untaken = sa.and_(
                    RUNS.c.run_id == run_id,
                    RUNS.c.segment == segment,
                    RUNS.c.state == "queued",
                )
                if namespace == self.namespace:
                    found = connection.execute(
                        query.where(is_untaken).with_for_update()
                    )
                    rows = [*rows, *found.all()]
            for row in rows:
                self._wake(connection, row)
                returned.append(row.run_id)
        # What DBOS holds for running counts against the tenant's limit for ever.
        self.client.cancel_workflows(pending)
        with self.database.transaction() as connection:
            connection.execute(
                sa.delete(WORKERS).where(
                    WORKERS.c.namespace == self.namespace, WORKERS.c.name == worker
                )
            )
        return returned

    def _wake(
        self, connection: sa.Connection, row: sa.Row[tuple[JSONValue, ...]]
    ) -> None:
        connection.execute(
            sa.update(RUNS)
            .where(RUNS.c.number == row.number)
            .values(
                state="queued",
                segment=row.segment + 1,
                fence=RUNS.c.fence + 1,
                waits_for=None,
                wakes=None,
            )
        )
        self._enqueue(connection, read_run(row).request, row.segment + 1)

    def _enqueue(
        self, connection: sa.Connection, request: RunRequest, segment: int
    ) -> None:
        options: EnqueueOptions = {
            "workflow_name": SEGMENT,
            "queue_name": self.queue,
            "workflow_id": json.dumps([self.namespace, request.run_id, segment]),
            "app_version": VERSION,
            # DBOS takes no empty key
            "queue_partition_key": json.dumps([self.namespace, request.tenant]),
            # a time, by the database's clock: a later one of a better priority does not
            # overtake for ever
            "priority": int(self.database.now(connection) - _EPOCH)
            + _MINUTE * request.priority,
        }
        self.client.enqueue_in_transaction(
            connection, options, self.namespace, request.run_id, segment
        )

    def _require(self, connection: sa.Connection, held: Held) -> None:
        """Lock the row of a run that the worker still has.

        Raises:
            RunLostError: it has not.
        """
        changed = connection.execute(
            sa.update(RUNS).where(*_holding(held)).values(fence=RUNS.c.fence)
        )
        if not changed.rowcount:
            run_id = held.request.run_id
            raise RunLostError(f"Run {run_id!r} is another worker's, or over")

    def _lock(self, connection: sa.Connection, run_id: str) -> int:
        # a write, so that SQLite takes its lock at once and PostgreSQL the row's
        number = connection.execute(
            sa.update(RUNS)
            .where(*self._of(run_id))
            .values(segment=RUNS.c.segment)
            .returning(RUNS.c.number)
        ).scalar_one_or_none()
        if number is None:
            raise EngineError(f"There is no run {run_id!r}")
        return int(number)

    def _of(self, run_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return RUNS.c.namespace == self.namespace, RUNS.c.run_id == run_id

    def _select(self, run_id: str) -> sa.Select[tuple[JSONValue, ...]]:
        return sa.select(RUNS).where(*self._of(run_id))

    def _insert(  # type: ignore[explicit-any]  # what SQLAlchemy's inserts return
        self, connection: sa.Connection, table: sa.Table, row: Mapping[str, object]
    ) -> bool:
        """Insert a row; return whether it was not there."""
        if self.database.engine.dialect.name == "sqlite":
            done = connection.execute(
                sqlite.insert(table).values(**row).on_conflict_do_nothing()
            )
        else:
            done = connection.execute(
                postgresql.insert(table).values(**row).on_conflict_do_nothing()
            )
        return bool(done.rowcount)


def _holding(held: Held) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        RUNS.c.number == held.number,
        RUNS.c.fence == held.fence,
        RUNS.c.state == "running",
    )


def _outcome(connection: sa.Connection, held: Held, name: str) -> Outcome | None:
    row = connection.execute(
        sa.select(STEPS).where(STEPS.c.number == held.number, STEPS.c.name == name)
    ).one_or_none()
    return None if row is None else (json.loads(row.value), row.problem)


def _dump(value: JSONValue) -> str:
    return json.dumps(value)
