"""The requests of signing in: where they may go, how much of an answer is read, and that no redirect leaves the origin.

A server names its authorization server, which names its endpoints: all of them are addresses that somebody else wrote.
They are fetched with https, from public addresses alone; from private ones where the server itself is at one, and from
this machine where the server is on it. Nothing leads to the local link, where clouds have their metadata.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Final, Self
from urllib.parse import urlsplit

import anyio
import attrs
import httpx2

from amplifier_kit.http.netguard import (
    AddressRange,
    Connector,
    NetPolicy,
    WebError,
    read_url,
)
from amplifier_kit.vendors.addresses import is_loopback
from amplifier_kit.vendors.transport import network
from amplifier_module_tool_mcp.http_transport import Carrier, pinned

__all__ = ["AddressNotAllowedError", "SignInRequests"]

_MAX_BYTES: Final = 1 << 20
_LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")


class AddressNotAllowedError(ValueError):
    """A server leads to an address to which nothing of signing in may go; says why."""


@attrs.define(eq=False)
class SignInRequests:
    """Sends the requests about one server."""

    _client: httpx2.AsyncClient
    _connector: Connector
    _is_local: bool

    @classmethod
    @asynccontextmanager
    async def about(
        cls, url: str, timeout: float, *, public_only: bool
    ) -> AsyncGenerator[Self, None]:
        """Yield what sends requests about the server at an address.

        Args:
            url: the server's address.
            timeout: seconds that one request may take.
            public_only: whether the server itself must be public.

        Raises:
            AddressNotAllowedError: the server itself is without https, and not on this machine.
        """
        is_local = is_loopback(url) and not public_only
        ranges: tuple[str, ...] = ()
        if is_local:
            ranges = _LOOPBACK
        elif not public_only and await _is_private(url, timeout):
            ranges = _PRIVATE
        policy = NetPolicy(
            allowed_addresses=[AddressRange(ip_network(text)) for text in ranges]
        )
        client = httpx2.AsyncClient(
            transport=network(url if is_local else "https://"),
            headers={"Accept-Encoding": "identity"},
            timeout=timeout,
            trust_env=False,
        )
        async with client:
            yield cls(client, Connector(policy=policy, timeout=timeout), is_local)

    async def check(self, url: str) -> None:
        """Refuse an address that a server wrote.

        Raises:
            AddressNotAllowedError: it is not one to which anything may go.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" and not (self._is_local and is_loopback(url)):
            raise AddressNotAllowedError(
                f"it leads to {url!a:.200}, which is without https"
            )
        if parts.username or parts.password or parts.fragment:
            raise AddressNotAllowedError(
                f"it leads to an address with a user, a password or a fragment, on {parts.hostname!a:.100}"
            )
        try:
            place = read_url(url)
            self._connector.policy.check_url(place)
            await self._connector.resolve(place)
        except WebError as error:
            raise AddressNotAllowedError(str(error)) from error

    async def send(
        self, request: httpx2.Request, *, with_body: bool = True
    ) -> httpx2.Response:
        """Send a request and return the answer; a redirect is an answer as any other.

        Args:
            request: what is sent.
            with_body: whether the body is read, up to a megabyte; else it is empty.

        Raises:
            AddressNotAllowedError: nothing may go there.
            httpx2.HTTPError: there is no answer.
            MessageTooLargeError: the answer is too long.
        """
        await self.check(str(request.url))
        sent = self._client.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=await request.aread(),
        )
        response = await self._client.send(
            await pinned(self._connector, sent), stream=True
        )
        try:
            body = await Carrier.read(response, _MAX_BYTES) if with_body else b""
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in ("content-length", "transfer-encoding")
        ]
        return httpx2.Response(
            response.status_code, headers=headers, content=body, request=request
        )


async def _is_private(url: str, timeout: float) -> bool:
    """Tell whether the server is at an address that is not public, because the person declared it so."""
    place = read_url(url)
    try:
        await Connector(policy=NetPolicy(), timeout=timeout).resolve(place)
    except WebError:
        return True
    return False
