"""Connections to the server: a pool, used from worker threads, so that it serves asyncio and trio alike.

Each statement has a limit of time on the server, and a connection that answers nothing is given up by the network.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Concatenate, Final, ParamSpec, Self, TypeAlias, TypeVar

import attrs
import psycopg
from anyio import CapacityLimiter, ClosedResourceError, to_thread
from psycopg.conninfo import conninfo_to_dict

from amplifier_module_store_postgres._schema import migrate
from amplifier_sdk.errors import StoreError, StoreUnavailableError

__all__ = ["Connection", "Database", "connect"]

P = ParamSpec("P")
T = TypeVar("T")

Connection: TypeAlias = psycopg.Connection
"""A connection to the server."""

POOL_SIZE: Final = 8
"""Connections of a process, and so how many of its statements run at once."""

STATEMENT_TIMEOUT: Final = 30.0
"""Seconds that a statement may take."""

_FRESH: Final = 1.0
"""Seconds for which a connection that was used is taken to be there; a statement that finds it gone fails."""

_LIMITS: Final[Mapping[str, float]] = {
    "statement_timeout": STATEMENT_TIMEOUT,
    "lock_timeout": 10.0,
    # A worker that is stopped within a transaction holds the row of its session: others
    # take that over only when the server has ended the transaction.
    "idle_in_transaction_session_timeout": 10.0,
}
_NETWORK: Final[Mapping[str, int | str]] = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "amplifier",
}


@attrs.define(eq=False)
class Database:
    """The connections of a store: as many as its tasks need at once, and not more than `POOL_SIZE`.

    No thread makes them in the background: whoever needs one gets the reason at once why there is none.

    Args:
        url: where the server is, as libpq takes it.
    """

    url: str
    _idle: deque[tuple[Connection, float]] = attrs.field(factory=deque)
    _limiter: CapacityLimiter = attrs.field(factory=lambda: CapacityLimiter(POOL_SIZE))
    _is_closed: bool = False

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to the server and bring the tables up to date.

        Raises:
            StoreUnavailableError: it does not answer, or refuses.
            StoreVersionError: the tables are of a version that does not fit.
            StoreError: the URL is none.
        """
        await to_thread.run_sync(_prepare, url)
        return cls(url)

    async def run(
        self,
        function: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a function with a connection, in a thread and in one transaction: all that it did, or nothing.

        Raises:
            StoreUnavailableError: the server does not answer, refuses, or went away.
            StoreError: it does not take what it was given.
            ClosedResourceError: the store is closed.
        """

        def call() -> T:
            with _translated(self.url), self._transaction() as connection:
                return function(connection, *args, **kwargs)

        # The limiter counts the threads, and so the connections.
        return await to_thread.run_sync(call, limiter=self._limiter)

    async def run_alone(
        self,
        function: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a function that changes something in one statement at most, which is a transaction by itself.

        It raises what `run` raises.
        """

        def call() -> T:
            with _translated(self.url), self._borrowed() as connection:
                return function(connection, *args, **kwargs)

        return await to_thread.run_sync(call, limiter=self._limiter)

    async def aclose(self) -> None:
        """Close the connections; those that are used now are closed when they are returned."""
        self._is_closed = True
        await to_thread.run_sync(self._close)

    def _close(self) -> None:
        with suppress(IndexError):
            while True:
                connection, _ = self._idle.pop()
                connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._borrowed() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        if self._is_closed:
            raise ClosedResourceError
        connection = self._usable() or connect(self.url)
        try:
            yield connection
        finally:
            self._return(connection)

    def _usable(self) -> Connection | None:
        """Return a connection that was used before, if the server has not closed it meanwhile."""
        with suppress(IndexError):
            while True:
                connection, returned = self._idle.pop()
                # one that was used right now is not asked: a turn uses it for each step
                if monotonic() - returned < _FRESH or _answers(connection):
                    return connection
                connection.close()
        return None

    def _return(self, connection: Connection) -> None:
        if connection.closed:  # it was lost
            return
        self._idle.append((connection, monotonic()))
        # nobody else closes it where the store was closed meanwhile
        if self._is_closed:
            self._close()


def _answers(connection: Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def connect(url: str) -> Connection:
    """Return a connection of one's own.

    Raises:
        StoreUnavailableError: the server does not answer, or refuses.
        StoreError: the URL is none.
    """
    with _translated(url):
        connection = psycopg.connect(url, autocommit=True, **_NETWORK)  # type: ignore[arg-type]  # libpq's own options
        try:
            # not by options at its start, which poolers between do not pass on
            for name, seconds in _LIMITS.items():
                limit = f"{seconds:g}s"
                connection.execute("SELECT set_config(%s, %s, false)", (name, limit))
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare(url: str) -> None:
    with _translated(url), connect(url) as connection:
        migrate(connection)


@contextmanager
def _translated(url: str) -> Iterator[None]:
    """Raise what goes wrong with the server as the errors of stores."""
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        problem = f"a statement took longer than {STATEMENT_TIMEOUT:g} s"
        raise StoreUnavailableError(f"{_place(url)}: {problem}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreUnavailableError(f"{_place(url)}: {_reason(error)}") from error
    except psycopg.Error as error:
        raise StoreError(f"{_place(url)}: {_reason(error)}") from error


def _reason(error: psycopg.Error) -> str:
    """Say what is wrong and what helps, in one line."""
    message = " ".join(str(error).split()).removesuffix(".")
    attempt = error.pgconn
    if attempt is not None and attempt.needs_password:
        remedy = "Give the password in PGPASSWORD or ~/.pgpass"
    elif attempt is not None and attempt.used_password:
        remedy = "Check the user and the password"
    elif isinstance(error, psycopg.errors.DiskFull):
        remedy = "Make room on the server's disk"
    elif isinstance(error, psycopg.OperationalError):
        remedy = "Check that the server runs, and try again"
    else:
        return message
    return f"{message}. {remedy}"


def _place(url: str) -> str:
    """Name the server without the password."""
    try:
        known = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "PostgreSQL"
    host, port = known.get("host") or "localhost", known.get("port") or 5432
    return f"PostgreSQL at {host}:{port}"
