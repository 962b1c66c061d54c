"""Running a server until a signal ends it, on asyncio or trio."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from ipaddress import ip_address
from typing import Final

import anyio
import attrs
import click
from hypercorn.config import Config
from hypercorn.protocol.h11 import H11Protocol
from starlette.types import ASGIApp

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.cli._structured_logs import library_logs
from amplifier.cli._terminal import notice
from amplifier.server.application import StoredServer
from amplifier.server.engines import open_named_engine
from amplifier.server.stores import ServerStores
from amplifier.server.token_store import TokenStore
from amplifier_sdk.engines import ExecutionEngine

__all__ = ["Listener", "listen_for_signals", "serve_until_signalled"]

_IDLE: Final = 10.0
"""Seconds in which a connection has to have sent a request's head: who sends it slowly holds nothing."""

_DRAIN: Final = 3.0
_BACKLOG: Final = 512
_MAX_HEAD: Final = 16_384


@attrs.frozen(kw_only=True)
class Listener:
    """Where a server listens.

    Args:
        host: the address.
        port: the port; 0 for a free one.
        certificate: the file of its TLS certificate.
        key: the file of its key.
    """

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None

    def bind(self) -> socket.socket:
        """Take the port.

        Raises:
            click.ClickException: it cannot be had.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server(
                (self.host, self.port), family=family, backlog=_BACKLOG
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise click.ClickException(
                f"Cannot listen at {self.host} port {self.port}: {reason}"
            ) from error

    def config(self, bound: socket.socket) -> Config:
        """Return the settings of the HTTP server."""
        config = Config()
        config.bind = [f"fd://{bound.detach()}"]
        config.keep_alive_timeout = config.ssl_handshake_timeout = _IDLE
        config.graceful_timeout = _DRAIN
        config.shutdown_timeout = _DRAIN
        config.h11_max_incomplete_size = _MAX_HEAD
        config.include_server_header = False
        config.certfile, config.keyfile = self.certificate, self.key
        config.loglevel = "ERROR"
        config.errorlog = logging.getLogger("hypercorn.error")
        return config

    async def serve(
        self,
        application: ASGIApp,
        bound: socket.socket,
        backend: str,
        stop: anyio.Event,
    ) -> None:
        """Answer the requests to a bound port, until the event is set.

        Args:
            application: answers them.
            bound: what `bind` returned.
            backend: the event loop that runs.
            stop: ends it.
        """
        serve = import_module(f"hypercorn.{backend}").serve
        with _upgrades_ignored():
            await serve(application, self.config(bound), shutdown_trigger=stop.wait)

    @property
    def is_private(self) -> bool:
        """Whether nobody reads along on the way."""
        if self.certificate is not None or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def serve_until_signalled(
    stores: ServerStores,
    options: PlanOptions,
    listener: Listener,
    backend: str,
    engine: str | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        click.ClickException: the port cannot be had.
        StoreError: the store cannot be opened.
        ConfigError: no installed module knows the engine.
        EngineError: it cannot be opened.
    """

    async def serve() -> None:
        async with _opened(engine) as queue:
            await _serve(StoredServer(stores, options, queue=queue), listener, backend)

    _allow_connections()
    with library_logs():
        anyio.run(serve, backend=backend)


@asynccontextmanager
async def _opened(engine: str | None) -> AsyncIterator[ExecutionEngine | None]:
    """Open the engine whose workers run the turns, where there is one."""
    if engine is None:
        yield None
        return
    opened = await open_named_engine(engine)
    try:
        yield opened
    finally:
        with anyio.CancelScope(shield=True):
            await opened.aclose()


def _allow_connections() -> None:
    """Let the process have as many connections as the system lets it: many systems begin with 1,024."""
    try:
        import resource  # which Windows has not
    except ModuleNotFoundError:
        return
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))


async def _serve(server: StoredServer, listener: Listener, backend: str) -> None:
    stores, stop = server.stores, anyio.Event()
    # the store first: what is wrong with it is said before anybody can call
    async with server.lifespan(), anyio.create_task_group() as group:
        bound = listener.bind()
        host, port = bound.getsockname()[:2]
        await _greet(stores, listener, f"{host}:{port}")
        await group.start(partial(listen_for_signals, stop))
        # in a task of its own, which hypercorn may cancel as it likes
        group.start_soon(listener.serve, server, bound, backend, stop)


async def _greet(stores: ServerStores, listener: Listener, place: str) -> None:
    scheme = "http" if listener.certificate is None else "https"
    if not await TokenStore(await stores.server()).load():
        notice("There is no token yet: amplifier token add NAME --role operator")
    if not listener.is_private:
        notice(
            "warning: tokens go over the network unencrypted; use --certificate, or a proxy with TLS"
        )
    notice(f"Serving at {scheme}://{place}")


@contextmanager
def _upgrades_ignored() -> Iterator[None]:
    """Let a connection that began as HTTP/1 stay that in a block; with TLS it may begin as HTTP/2.

    Hypercorn takes a request to go over to HTTP/2 from anybody, and holds a connection from then on that says nothing
    more, without a deadline. Behind a proxy what follows such a request would be seen by nobody. No setting leaves that
    out.
    """
    check = H11Protocol._check_protocol  # noqa: SLF001  # nothing else stands before it

    async def ignore(_: H11Protocol, __: object) -> None:
        """Answer as if nothing had been asked for but the request."""

    H11Protocol._check_protocol = ignore  # type: ignore[assignment,method-assign]  # noqa: SLF001  # likewise
    try:
        yield
    finally:
        H11Protocol._check_protocol = check  # type: ignore[method-assign]  # noqa: SLF001  # likewise


async def listen_for_signals(
    stop: anyio.Event, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    """Wait for SIGINT or SIGTERM, and set what stops the server; started when it listens."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            stop.set()
            return  # a second signal ends the process at once
