"""The network, with answers that may be left early."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final

import anyio
import attrs
import httpx2

from amplifier_kit.vendors.addresses import is_loopback

__all__ = ["ClosingStream", "ClosingTransport", "network"]

_KEPT: Final = 30.0
_MAX_STORED: Final = 20

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that closing a connection may take."""


def network(address: str, *, proxy: str | None = None) -> httpx2.AsyncBaseTransport:
    """Make what carries requests to an address; it reads certificates from the disk for https.

    Connections to this machine are not pooled: making one costs nothing, and llama.cpp's server closes those that are
    pooled, so that every third request would fail.

    Args:
        address: where requests go; connections to it, as to everything, are made with the first request.
        proxy: an HTTP proxy's address; those that environment variables name are not used.
    """
    is_plain = address.startswith("http:") and (
        proxy is None or proxy.startswith("http:")
    )
    limit = _MAX_STORED
    if is_loopback(address):
        limit = 0
    return ClosingTransport(
        # Without certificates to load, a context is made in no time.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        trust_env=False,
        proxy=proxy,
        limits=httpx2.Limits(
            max_keepalive_connections=limit,
            max_connections=None,
            keepalive_expiry=_KEPT,
        ),
    )


class ClosingTransport(httpx2.AsyncHTTPTransport):
    """Gives answers whose streams may be left early."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return the answer as soon as its headers are there."""
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = ClosingStream(response.stream)
        return response


@attrs.define(eq=False)
class ClosingStream(httpx2.AsyncByteStream):
    """An answer's stream that leaves no generator behind when its reader stops early.

    The library closes its generators but one, which trio then complains about; reading on after the connection
    is closed ends that one as well.
    """

    inner: httpx2.AsyncByteStream

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        pieces = aiter(self.inner)
        try:
            async for piece in pieces:
                yield piece
        finally:
            # A reader that is cancelled closes the connection as well.
            with anyio.move_on_after(CLOSE_TIMEOUT, shield=True):
                await self.inner.aclose()
                with suppress(httpx2.TransportError, httpx2.StreamError):
                    await anext(pieces, None)

    async def aclose(self) -> None:
        """Close the connection."""
        await self.inner.aclose()
