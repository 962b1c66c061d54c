"""Fetching: one request after the other, each to an address that was checked, until one is no redirect."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final

import anyio
import attrs
import httpcore2

from amplifier_kit.http.netguard.bodies import ACCEPTED, Body, read_body, unpacker_of
from amplifier_kit.http.netguard.connector import Connector
from amplifier_kit.http.netguard.errors import (
    BodyError,
    HostUnreachableError,
    RedirectError,
)
from amplifier_kit.http.netguard.urls import WebUrl

__all__ = ["FetchedResponse", "Fetcher"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CONDITIONS: Final = frozenset(
    {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since"}
)


@attrs.define(eq=False, kw_only=True)
class FetchedResponse:
    """A server's answer, whose body can be read while its block runs.

    Args:
        url: the address that answered, after all redirects.
        status: the status code.
        headers: by name in lower case; of several with one name, joined by commas.
    """

    url: WebUrl
    status: int
    headers: Mapping[str, str]
    _stream: httpcore2.Response = attrs.field(alias="stream")

    async def read(self, max_bytes: int, *, seconds: float | None = None) -> Body:
        """Read the body, unpacked, up to a number of bytes; the rest is never asked for.

        Args:
            max_bytes: the most bytes, counted after unpacking.
            seconds: return what there is after this time; `None` means without limit.

        Raises:
            BodyError: it is packed in a way that is not known, or damaged.
            HostUnreachableError: the connection broke or was silent for too long.
        """
        chunks = self._stream.aiter_stream()
        try:
            # what is left unread is dropped with the connection, and not drained
            async with aclosing(chunks):
                unpacker = unpacker_of(self.headers.get("content-encoding", ""))
                return await read_body(chunks, unpacker, max_bytes, seconds)
        except ValueError as error:
            raise BodyError(
                str(self.url), f"the answer cannot be read: {error}"
            ) from error
        except _BROKEN as error:
            raise _unreachable(self.url, error) from error


_BROKEN: Final = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
)


@attrs.define(eq=False, kw_only=True)
class Fetcher:
    """Fetches pages.

    Args:
        connector: opens the connections.
        idle_timeout: seconds of silence after which a server is given up.
        max_redirects: how often an address may lead on.
        user_agent: who asks, for servers.
    """

    connector: Connector
    idle_timeout: float = 10.0
    max_redirects: int = 5
    user_agent: str = "amplifier"

    @asynccontextmanager
    async def get(
        self,
        url: WebUrl,
        headers: Mapping[str, str] | None = None,
        *,
        check: Callable[[WebUrl], Awaitable[None]] | None = None,
    ) -> AsyncGenerator[FetchedResponse, None]:
        """Ask for an address, follow where it leads, and yield the answer; leaving the block closes the connection.

        Each redirect is checked as the first address was, and no cookie or credential is ever sent. Headers that name
        a version, such as `If-None-Match`, go to the first address alone: another one's versions are others.

        Args:
            url: the address.
            headers: what is sent beside the usual.
            check: called with each address before it is asked, to refuse it by raising.

        Raises:
            WebError: an address on the way may not be fetched, cannot be reached, or the way does not end.
        """
        asked, sent = url, dict(headers or {})
        for _ in range(self.max_redirects + 1):
            if check is not None:
                await check(asked)
            async with self._ask(asked, sent) as answer:
                place = None
                # a redirect without a place is an answer like any other, as
                # browsers take it
                if answer.status in _REDIRECTS:
                    place = answer.headers.get("location")
                if place is None:
                    yield answer
                    return
            # connected to and checked anew by the next round, like the first
            # address
            asked = asked.join(place)
            sent = {
                name: value
                for name, value in sent.items()
                if name.lower() not in _CONDITIONS
            }
        raise RedirectError(
            str(url),
            f"leads on more than {self.max_redirects} times, at last to {asked}",
        )

    @asynccontextmanager
    async def _ask(
        self, url: WebUrl, headers: Mapping[str, str]
    ) -> AsyncGenerator[FetchedResponse, None]:
        stream = await self.connector.connect(url)
        try:
            response = await self._send(url, headers, stream)
            yield FetchedResponse(
                url=url,
                status=response.status,
                headers=_fold(response.headers),
                stream=response,
            )
        finally:
            # a cancelled fetch must not leave its connection open
            with anyio.CancelScope(shield=True):
                await stream.aclose()

    async def _send(
        self,
        url: WebUrl,
        headers: Mapping[str, str],
        stream: httpcore2.AsyncNetworkStream,
    ) -> httpcore2.Response:
        sent = {
            "Host": url.authority,
            "User-Agent": self.user_agent,
            "Accept-Encoding": ACCEPTED,
            **headers,
        }
        request = httpcore2.Request(
            "GET",
            httpcore2.URL(
                scheme=url.scheme.encode(),
                host=url.host.encode(),
                port=url.port,
                target=url.target.encode("ascii"),
            ),
            # one request a connection: the next one may go to another checked
            # address
            headers=[*sent.items(), ("Connection", "close")],
            extensions={
                "timeout": {"read": self.idle_timeout, "write": self.idle_timeout}
            },
        )
        try:
            return await httpcore2.AsyncHTTP11Connection(
                request.url.origin, stream
            ).handle_async_request(request)
        except _BROKEN as error:
            raise _unreachable(url, error) from error


def _fold(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    folded: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1").lower()
        value = _text(raw_value)
        if name in folded:
            folded[name] = f"{folded[name]}, {value}"
        else:
            folded[name] = value
    return folded


def _text(value: bytes) -> str:
    try:
        # headers are Latin-1 by the standard and UTF-8 in practice
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _unreachable(url: WebUrl, error: Exception) -> HostUnreachableError:
    words = "broke the connection"
    if isinstance(error, httpcore2.TimeoutException):
        words = "was silent for too long"
    detail = ""
    if str(error):
        detail = f" ({error})"
    return HostUnreachableError(
        str(url), f"the server {words}{detail}; try again later"
    )
