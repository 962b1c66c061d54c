"""Hosts that can be cut off from the database: network namespaces, and where those are not permitted, a proxy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from ipaddress import IPv4Network
from typing import Final, Protocol
from urllib.parse import urlsplit

import anyio
import attrs
from anyio import to_thread

from amplifier.testing.postgres import PostgresServer

__all__ = ["Host", "host_of"]

_NETWORKS: Final = IPv4Network("10.213.0.0/16")


class Host(Protocol):
    """Where a worker runs whose way to the database can be cut: what is sent meanwhile is lost, and nobody says so."""

    @property
    def kind(self) -> str:
        """What is between."""

    @property
    def address(self) -> str:
        """Where it finds the database, as `host:port`."""

    @property
    def prefix(self) -> Sequence[str]:
        """What stands before a command that runs there."""

    async def cut(self) -> None:
        """Let nothing through."""

    async def mend(self) -> None:
        """Let everything through."""


@asynccontextmanager
async def host_of(postgres: PostgresServer) -> AsyncIterator[Host]:
    """Yield a host beside the one that has the database."""
    with _namespace(postgres) as found:
        if found is not None:
            yield found
            return
    async with _wire(postgres) as wire:
        yield wire


@attrs.frozen(eq=False)
class _Namespace:
    """A network namespace, and a pair of interfaces that leads to it."""

    name: str
    address: str
    kind: str = "network namespace"

    @property
    def prefix(self) -> Sequence[str]:
        return ("ip", "netns", "exec", self.name)

    async def cut(self) -> None:
        await to_thread.run_sync(_ip, "link", "set", self.name, "down")

    async def mend(self) -> None:
        await to_thread.run_sync(_ip, "link", "set", self.name, "up")


@contextmanager
def _namespace(postgres: PostgresServer) -> Iterator[_Namespace | None]:
    name = f"amp{os.getpid()}"
    if not _is_permitted("netns", "add", name):
        yield None
        return
    try:
        subnets = [*_NETWORKS.subnets(new_prefix=30)]
        here, there = subnets[os.getpid() % len(subnets)].hosts()
        inside = ("-n", name)
        peer = f"{name}p"
        _ip("link", "add", name, "type", "veth", "peer", "name", peer, "netns", name)
        _ip("addr", "add", f"{here}/30", "dev", name)
        _ip(*inside, "addr", "add", f"{there}/30", "dev", peer)
        _ip("link", "set", name, "up")
        _ip(*inside, "link", "set", peer, "up")
        _ip(*inside, "link", "set", "lo", "up")
        _let_in(postgres, f"{there}/32")
        yield _Namespace(name, f"{here}:{postgres.port}")
    finally:
        _ip("netns", "delete", name)


def _let_in(postgres: PostgresServer, network: str) -> None:
    with (postgres.data / "postgresql.conf").open("a") as settings:
        settings.write("listen_addresses = '*'\n")
    with (postgres.data / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {network} scram-sha-256\n")
    postgres.stop()
    postgres.start()


def _is_permitted(*words: str) -> bool:
    try:
        done = subprocess.run(["ip", *words], check=False, capture_output=True)
    except FileNotFoundError:
        return False
    return done.returncode == 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@attrs.define(eq=False)
class _Wire:
    """A port of this machine behind which the database is."""

    address: str
    kind: str = "proxy"
    prefix: Sequence[str] = ()
    _is_cut: bool = False

    async def cut(self) -> None:
        self._is_cut = True

    async def mend(self) -> None:
        self._is_cut = False

    async def carry(
        self, source: anyio.abc.SocketStream, target: anyio.abc.SocketStream
    ) -> None:
        """Pass on what comes, or lose it."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, OSError):
            async for data in source:
                if self._is_cut:
                    await anyio.sleep_forever()  # as a cable that was pulled
                await target.send(data)


@asynccontextmanager
async def _wire(postgres: PostgresServer) -> AsyncIterator[_Wire]:
    """Listen for a block, and pass on to the database."""
    target = urlsplit(postgres.url())
    assert target.port is not None
    host, port = str(target.hostname), target.port
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        own = listener.extra(anyio.abc.SocketAttribute.local_port)
        wire = _Wire(f"127.0.0.1:{own}")

        async def serve(near: anyio.abc.SocketStream) -> None:
            far = await anyio.connect_tcp(host, port)
            async with near, far, anyio.create_task_group() as both:
                both.start_soon(wire.carry, near, far)
                both.start_soon(wire.carry, far, near)

        group.start_soon(listener.serve, serve)
        yield wire
        group.cancel_scope.cancel()
