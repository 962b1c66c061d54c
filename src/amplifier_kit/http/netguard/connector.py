"""Connections to public addresses alone: what was looked up is what is checked, and what is checked is connected to.

A name is looked up once. Every address that it leads to has to be one that may be used, so that an answer that mixes
public and private ones is refused, and the connection goes to one of these addresses and never to the name.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from ipaddress import ip_address
from itertools import zip_longest
from socket import SocketKind
from typing import Final, TypeAlias

import anyio
import attrs
import httpcore2
from anyio import to_thread

from amplifier_kit.http.netguard.addresses import Address
from amplifier_kit.http.netguard.errors import (
    AddressRefusedError,
    HostUnknownError,
    HostUnreachableError,
)
from amplifier_kit.http.netguard.policies import NetPolicy
from amplifier_kit.http.netguard.urls import WebUrl

__all__ = ["Connector", "LookUp", "look_up"]

LookUp: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses that a name leads to, given the name and the port; raises `OSError` when there is none."""

_MAX_TRIED: Final = 4


async def look_up(host: str, port: int) -> Sequence[str]:
    """Ask the system for the addresses of a name, in the order in which it would try them.

    Raises:
        OSError: there is none.
    """
    found = await anyio.getaddrinfo(host, port, type=SocketKind.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@attrs.define(eq=False, kw_only=True)
class Connector:
    """Opens connections.

    Args:
        policy: what may be connected to.
        timeout: seconds for the connection to one address, and as many for its encryption.
        look_up: asks for the addresses of a name.
        backend: makes the connections; default the network.
    """

    policy: NetPolicy
    timeout: float = 10.0
    look_up: LookUp = look_up
    backend: httpcore2.AsyncNetworkBackend = attrs.field(factory=httpcore2.AnyIOBackend)

    async def connect(self, url: WebUrl) -> httpcore2.AsyncNetworkStream:
        """Connect to the host of an address, encrypted for https; the caller closes what it gets.

        Raises:
            WebError: the address may not be connected to, or cannot.
        """
        # again for each redirect: the caller checks only the first address
        self.policy.check_url(url)
        addresses = await self.resolve(url)
        failures: list[str] = []
        for address in _alternating(addresses)[:_MAX_TRIED]:
            try:
                return await self._open(url, address)
            except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
                failures.append(str(error) or type(error).__name__)
        raise HostUnreachableError(
            str(url),
            f"no connection ({'; '.join(failures)}); try again later, or elsewhere",
        )

    async def resolve(self, url: WebUrl) -> Sequence[Address]:
        """Return the addresses of the host, each of them checked.

        Raises:
            HostUnknownError: there is none.
            AddressRefusedError: one of them may not be connected to.
        """
        if url.address is not None:
            addresses = [url.address]
        else:
            addresses = await self._addresses(url)
        # all of them: one private address among public ones is how names are
        # rebound
        for address in addresses:
            self.policy.check_address(url, address)
        return addresses

    async def _addresses(self, url: WebUrl) -> list[Address]:
        try:
            found = await self.look_up(url.host, url.port)
        except (OSError, UnicodeError) as error:
            # the standard library's own codec for names raises the latter
            raise HostUnknownError(
                str(url), f"the name {url.host} was not found ({error}); check it"
            ) from error
        if not found:
            raise HostUnknownError(
                str(url), f"the name {url.host} leads to no address; check it"
            )
        try:
            return [ip_address(text) for text in found]
        except ValueError as error:
            raise AddressRefusedError(
                str(url), f"the name leads to what is no address ({error})"
            ) from error

    async def _open(
        self, url: WebUrl, address: Address
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self.backend.connect_tcp(
            str(address), url.port, timeout=self.timeout
        )
        if url.scheme == "http":
            return stream
        try:
            # reading the certificates would hold up every other task
            context = await to_thread.run_sync(_certificates)
            return await stream.start_tls(
                # the connection goes to the address, and the certificate must be
                # the name's
                context,
                server_hostname=url.host,
                timeout=self.timeout,
            )
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stream.aclose()
            raise


def _alternating(addresses: Sequence[Address]) -> list[Address]:
    """Let IPv6 and IPv4 take turns: where one of them leads nowhere, the other is tried while there is time."""
    version = addresses[0].version
    first = [address for address in addresses if address.version == version]
    other = [address for address in addresses if address.version != version]
    return [
        address
        for pair in zip_longest(first, other)
        for address in pair
        if address is not None
    ]


@cache
def _certificates() -> ssl.SSLContext:
    """Read the certificates that this machine trusts, once; it takes some ten milliseconds."""
    context = httpcore2.default_ssl_context()
    # HTTP/1.1 is all that is spoken here, so nothing else may be agreed on
    context.set_alpn_protocols(["http/1.1"])
    return context
