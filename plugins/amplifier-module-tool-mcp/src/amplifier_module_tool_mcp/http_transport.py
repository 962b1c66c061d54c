"""HTTP to one address: where requests may go, and how much of an answer is read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Self, TypeAlias

import anyio
import attrs
import httpx2

from amplifier_kit.http.answers import ending
from amplifier_kit.http.netguard import Connector, NetPolicy, read_url
from amplifier_kit.vendors.transport import network
from amplifier_module_tool_mcp.wire import MessageTooLargeError

__all__ = ["Authorize", "Carrier", "pinned"]

Authorize: TypeAlias = Callable[[str | None], Awaitable[str | None]]
"""Returns the token that requests carry, if the person signed in; given one that was refused, another one."""

_SILENT_SECONDS: Final = 300.0
_MAX_REDIRECTS: Final = 3
_SAME_METHOD: Final = frozenset({307, 308})


@attrs.define(eq=False)
class Carrier(anyio.AsyncContextManagerMixin):
    """Carries requests to one address; leaving its block closes the connections."""

    _client: httpx2.AsyncClient
    _url: httpx2.URL
    _connector: Connector | None
    _authorize: Authorize | None = None

    @classmethod
    def to(
        cls,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        public_only: bool,
        authorize: Authorize | None = None,
    ) -> Self:
        """Make a carrier; it reads certificates from the disk.

        Args:
            url: where requests go.
            headers: sent with each.
            timeout: seconds that connecting and sending may take.
            public_only: whether the address must be public.
            authorize: returns the token that each carries.
        """
        client = httpx2.AsyncClient(
            transport=network(url),
            # Not packed: a few bytes of an answer could unpack to more than memory
            # holds.
            headers={**headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(timeout, read=_SILENT_SECONDS),
            # A proxy or a password of the environment is meant for other addresses.
            trust_env=False,
        )
        return cls(
            client,
            httpx2.URL(url),
            Connector(policy=NetPolicy(), timeout=timeout) if public_only else None,
            authorize,
        )

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        async with self._client:
            yield self

    @asynccontextmanager
    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        data: bytes | None = None,
        *,
        is_patient: bool = False,
    ) -> AsyncGenerator[httpx2.Response, None]:
        """Send a request and yield the answer, whose body is not read yet.

        Args:
            method: the request's.
            headers: beside those of each request.
            data: the body.
            is_patient: whether it is waited for without end, also while nothing comes.

        Raises:
            httpx2.HTTPError: there is no answer, or a packed one.
            WebError: the address is not public and must be.
        """
        url = self._url
        token = await self._token(None)
        is_renewed = False
        for _ in range(_MAX_REDIRECTS):
            request = self._client.build_request(
                method, url, headers=headers, content=data
            )
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"
            if is_patient:
                request.extensions["timeout"] = {
                    **request.extensions["timeout"],
                    "read": None,
                }
            # Redirects are followed by hand: the client would follow them to any host,
            # with the headers' secrets.
            if self._connector is not None:
                request = await pinned(self._connector, request)
            response = await self._client.send(request, stream=True)
            try:
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise httpx2.RemoteProtocolError(
                        "its answer is packed although that was not asked for"
                    )
                # It may have been taken back before its time.
                if response.status_code == 401 and token and not is_renewed:
                    token, is_renewed = await self._token(token), True
                    continue
                place = self._followed(response, url)
                if place is None:
                    yield response
                    return
                url = place
            finally:
                # A connection that is not closed here would stay open until the garbage
                # collector comes.
                with anyio.CancelScope(shield=True):
                    await response.aclose()
        raise httpx2.TooManyRedirects("it leads on and on")

    async def _token(self, refused: str | None) -> str | None:
        if self._authorize is None:
            return None
        return await self._authorize(refused)

    @staticmethod
    async def read(response: httpx2.Response, max_bytes: int) -> bytes:
        """Read a body.

        Raises:
            TooLargeError: it is longer than that; the rest is never asked for.
        """
        data = bytearray()
        async with ending(response.aiter_raw()) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > max_bytes:
                    raise MessageTooLargeError(
                        f"the {max_bytes} bytes of max_message_bytes"
                    )
        return bytes(data)

    def _followed(
        self, response: httpx2.Response, url: httpx2.URL
    ) -> httpx2.URL | None:
        """Return where an answer leads, when that is followed: with the same method to the same origin."""
        if (
            response.status_code not in _SAME_METHOD
            or "location" not in response.headers
        ):
            return None
        try:
            place = url.join(response.headers["location"])
        except httpx2.InvalidURL:
            return None
        # Elsewhere the headers, and with them a token, would go to somebody else.
        same = (place.scheme, place.host, place.port, place.userinfo) == (
            url.scheme,
            url.host,
            url.port,
            url.userinfo,
        )
        if same:
            return place
        return None


async def pinned(connector: Connector, request: httpx2.Request) -> httpx2.Request:
    """Look a request's host up, check where it leads, and let the request go there and nowhere else.

    Raises:
        WebError: the connector's policy refuses it.
    """
    url = read_url(str(request.url))
    connector.policy.check_url(url)
    # The request goes to this very address: a second lookup could answer with
    # another one.
    address = (await connector.resolve(url))[0]
    # The server and its certificate are known by name, though the request goes to
    # an address.
    request.headers["Host"] = url.authority
    request.extensions = {**request.extensions, "sni_hostname": url.host}
    request.url = request.url.copy_with(host=str(address))
    return request
