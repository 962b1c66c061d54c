"""What the engine stores beside DBOS's own tables, in the same database and so in the same transactions.

DBOS has the queue. What it runs is a *segment* of a run: a run that is suspended, or returned by its worker, ends its
segment, and is a new one when it is queued again. Steps are recorded here, by name and not by number, and only while
the worker still has the run: DBOS records a step whoever ran it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import attrs
import sqlalchemy as sa
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)

from amplifier_sdk.engines import Run, RunRequest, RunState
from amplifier_sdk.errors import EngineError
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "EVENTS",
    "RUNS",
    "STEPS",
    "WORKERS",
    "EngineDatabase",
    "UnreachableError",
    "read_run",
]

_METADATA: Final = sa.MetaData()

RUNS: Final = sa.Table(
    "amplifier_runs",
    _METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("namespace", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("workflow", sa.Text, nullable=False),
    sa.Column("argument", sa.Text, nullable=False),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False, index=True),
    sa.Column("segment", sa.Integer, nullable=False),
    # each worker that has the run counts it up, so that an earlier one changes nothing
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("worker", sa.Text),
    sa.Column("waits_for", sa.Text),
    sa.Column("wakes", sa.Float),
    sa.Column("result", sa.Text, nullable=False),
    sa.Column("problem", sa.Text),
    sa.UniqueConstraint("namespace", "run_id"),
)

EVENTS: Final = sa.Table(
    "amplifier_run_events",
    _METADATA,
    sa.Column("number", sa.Integer, sa.ForeignKey(RUNS.c.number), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

STEPS: Final = sa.Table(
    "amplifier_run_steps",
    _METADATA,
    sa.Column("number", sa.Integer, sa.ForeignKey(RUNS.c.number), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("problem", sa.Text),
)

WORKERS: Final = sa.Table(
    "amplifier_workers",
    _METADATA,
    sa.Column("namespace", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("expires", sa.Float, nullable=False),
)

_NOW: Final[Mapping[str, str]] = {
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}
"""The database's clock in seconds since the epoch: those of workers may differ by minutes."""


class UnreachableError(EngineError):
    """The database does not answer, or is locked: nothing was done, or all of it, and later it may answer."""


@attrs.frozen(eq=False)
class EngineDatabase:
    """The database of an engine.

    Args:
        engine: its connections, which DBOS uses as well.
        place: where it is, without a password.
    """

    engine: sa.Engine
    place: str

    def create(self) -> None:
        """Make the tables that are missing."""
        from dbos import DBOS  # it takes half a second to import

        # what goes wrong is the error's to say, once
        logging.getLogger("dbos").setLevel(logging.CRITICAL)
        with self._translated():
            DBOS.migrate(self.engine.url.render_as_string(hide_password=False))
            _METADATA.create_all(self.engine)

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Do all of a block, or nothing.

        Raises:
            EngineError: the database does not answer, or refuses.
        """
        with self._translated(), self.engine.begin() as connection:
            yield connection

    def now(self, connection: sa.Connection) -> float:
        """Return the time by the database's clock."""
        query = _NOW[self.engine.dialect.name]
        return float(connection.execute(sa.text(query)).scalar_one())

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            # The statement and its values are no part of the message: they may be anything.
            reason = str(getattr(error, "orig", None) or type(error).__name__)
            first = reason.strip().partition("\n")[0]
            kind = EngineError
            # a server that ends an idle transaction says so by an error of its own kind
            is_cut_off = isinstance(error, DBAPIError) and error.connection_invalidated
            if is_cut_off or isinstance(error, (InterfaceError, OperationalError)):
                kind = UnreachableError
            raise kind(f"The engine at {self.place} failed: {first}") from error


def read_run(row: sa.Row[tuple[JSONValue, ...]]) -> Run:
    """Return the run of a row of `RUNS`."""
    state: RunState = row.state
    request = RunRequest(
        run_id=row.run_id,
        workflow=row.workflow,
        argument=json.loads(row.argument),
        tenant=row.tenant,
        priority=row.priority,
    )
    return Run(
        request=request,
        state=state,
        result=json.loads(row.result),
        problem=row.problem,
        waits_for=row.waits_for,
    )
