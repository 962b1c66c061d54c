"""Tests that reach no vendor."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from unittest import mock

__all__ = ["NetworkReachedError", "no_network"]


class NetworkReachedError(AssertionError):
    """A test reached for an address that is not of this machine."""


@contextmanager
def no_network() -> Iterator[None]:
    """Refuse every connection to another machine in the block, also in threads.

    What was refused and then hidden, for example by retries, fails the block at its end.

    Raises:
        NetworkReachedError: something reached for another machine; names the address.
    """
    reached: list[str] = []
    look_up, connect, connect_ex = (
        socket.getaddrinfo,
        socket.socket.connect,
        socket.socket.connect_ex,
    )

    def refuse(address: object) -> None:
        reached.append(str(address))
        raise NetworkReachedError(f"This test reached for {address}")

    def checked_look_up(host: object, *args: object, **options: object) -> object:
        if not _is_local(host):
            refuse(host)
        return look_up(host, *args, **options)  # type: ignore[arg-type]  # as given

    def checked_connect(self: socket.socket, address: object) -> None:
        if not _is_local_address(self, address):
            refuse(address)
        connect(self, address)  # type: ignore[arg-type]  # as given

    def checked_connect_ex(self: socket.socket, address: object) -> int:
        if not _is_local_address(self, address):
            refuse(address)
        return connect_ex(self, address)  # type: ignore[arg-type]  # as given

    with (
        mock.patch.object(socket, "getaddrinfo", checked_look_up),
        mock.patch.object(socket.socket, "connect", checked_connect),
        mock.patch.object(socket.socket, "connect_ex", checked_connect_ex),
    ):
        yield
    if reached:
        raise NetworkReachedError(f"This test reached for {', '.join(reached)}")


def _is_local_address(used: socket.socket, address: object) -> bool:
    # a socket of the file system reaches this machine alone
    if used.family not in (socket.AF_INET, socket.AF_INET6):
        return True
    return isinstance(address, tuple) and _is_local(address[0])


def _is_local(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    # no name means this machine, as for a server that listens
    if name in (None, "", "localhost"):
        return True
    try:
        return ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False
