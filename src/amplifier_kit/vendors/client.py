"""HTTP with one server: what is posted, and the events or the JSON that come back."""

from __future__ import annotations

import errno
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Final, Literal, TypeAlias, TypeVar, TypeVarTuple, Unpack

import anyio
import anyio.lowlevel
import attrs
import httpx2

from amplifier_kit.http.answers import ending
from amplifier_kit.http.sse import (
    Comment,
    EventDecoder,
    EventTooLongError,
    LineDecoder,
    ServerEvent,
)
from amplifier_kit.vendors.addresses import is_loopback, join_address, shown_address
from amplifier_kit.vendors.headers import is_header_value
from amplifier_kit.vendors.payloads import read_json, write_json
from amplifier_kit.vendors.refusals import is_error, status_of
from amplifier_kit.vendors.transport import network
from amplifier_sdk.errors import (
    ConfigurationError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    StreamError,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Exchange", "Framing", "Refuse", "VendorClient"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Framing: TypeAlias = Literal["sse", "lines"]
"""How events follow each other: as server-sent events, or as one JSON text a line."""

Refuse: TypeAlias = Callable[[int, Mapping[str, str], bytes], LLMError]
"""Makes the error of an answer that is none: of its status, its headers and the beginning of its body."""

_CONNECT: Final = 5.0
_REST: Final = 0.05
_CLOSE: Final = 2.0
_MAX_AT_ONCE: Final = 16 * 1024
_LONGEST_REFUSAL: Final = 64 * 1024
_LONGEST_ANSWER: Final = 64 * 1024 * 1024
_NO_STREAMS: Final[Mapping[Framing, frozenset[str]]] = {
    "sse": frozenset({"application/json", "text/html"}),
    "lines": frozenset({"text/html"}),
}


@attrs.frozen(kw_only=True)
class Exchange:
    """One exchange with a server.

    Args:
        path: relative to the server's address; may have a query.
        refuse: makes the error when the status is 300 or more.
        body: what is posted as JSON; without one the path is got.
        headers: names and values; may hold credentials.
        timeout: seconds for all of it; the time between two reads of the events does not count.
        heard: gets the headers of an answer that is no refusal, names in lower case.
        is_over: asked after each event; true ends the reading, and the connection can be used again.
    """

    path: str
    refuse: Refuse
    body: Mapping[str, JSONValue] | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    timeout: float = 600.0
    heard: Callable[[Mapping[str, str]], None] | None = None
    is_over: Callable[[], bool] | None = None


@attrs.define(eq=False)
class VendorClient:
    """A client of one server; whoever opens it closes it."""

    address: str = attrs.field(repr=shown_address)
    idle_timeout: float
    _http: httpx2.AsyncClient = attrs.field(repr=False)
    _keeps: bool = attrs.field(repr=False)
    _way: str = attrs.field(repr=False)

    @classmethod
    def open(
        cls,
        address: str,
        *,
        idle_timeout: float = 60.0,
        proxy: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> VendorClient:
        """Make the client; nothing is sent yet. It reads certificates from the disk for https.

        Args:
            address: what paths are relative to.
            idle_timeout: seconds of silence after which an exchange is given up.
            proxy: an HTTP proxy's address; those that environment variables name are not used.
            transport: what carries requests; default the network.
        """
        # `trust_env` off: a proxy that a variable names would read the
        # credentials
        http = httpx2.AsyncClient(
            transport=transport or network(address, proxy=proxy),
            timeout=httpx2.Timeout(None, connect=_CONNECT),
            trust_env=False,
            headers={"User-Agent": "amplifier"},
        )
        way = ""
        if proxy is not None:
            way = f" through the proxy {shown_address(proxy)}"
        return cls(
            address,
            idle_timeout,
            http,
            transport is None and not is_loopback(address),
            way,
        )

    async def aclose(self) -> None:
        """Close the pooled connections."""
        await self._http.aclose()

    async def events(
        self, call: Exchange, *, framing: Framing = "sse"
    ) -> AsyncGenerator[ServerEvent | Comment, None]:
        """Yield an answer's events and comments as they arrive; closing the generator closes the connection.

        Raises:
            LLMError: the server refused, was silent, broke off, or sent what is no stream.
        """
        # time is counted over reads alone: what the receiver does between them is
        # its own
        limits = _TimeLimits(call.timeout, self.idle_timeout)
        try:
            response = await limits.wait(self._send, call)
            try:
                await _check(response, call, limits)
                decoder = await _decoder(response, call, limits, framing)
                async with aclosing(_pieces(response)) as pieces:
                    while (piece := await limits.wait(_next, pieces)) is not None:
                        for event in decoder.feed(piece):
                            yield event
                            if call.is_over is not None and call.is_over():
                                # only now can the connection go back to the pool
                                await _drain(pieces)
                                return
                if isinstance(decoder, LineDecoder):
                    for event in decoder.finish():
                        yield event
            finally:
                await _close(response)
        except (httpx2.RequestError, EventTooLongError, LLMError) as error:
            raised = self._raised(error)
            raise raised from raised.__cause__

    async def json(self, call: Exchange) -> JSONValue:
        """Return the JSON of an answer.

        Raises:
            LLMError: the server refused, was silent, broke off, or sent what is not JSON.
        """
        limits = _TimeLimits(call.timeout, self.idle_timeout)
        try:
            response = await limits.wait(self._send, call)
            try:
                await _check(response, call, limits)
                return read_json(await _beginning(response, limits, _LONGEST_ANSWER))
            finally:
                await _close(response)
        except (httpx2.RequestError, LLMError) as error:
            raised = self._raised(error)
            raise raised from raised.__cause__

    async def _send(self, call: Exchange) -> httpx2.Response:
        """Send the call, and once more when a pooled connection turns out to be closed."""
        content = None
        if call.body is not None:
            content = write_json(call.body)
        is_new = not self._keeps

        async def trace(name: str, _: object) -> None:
            nonlocal is_new
            # the trace says whether a connection was made for this call: one that
            # the pool had may have been closed by the server meanwhile, and only
            # then is it safe to send again
            is_new = is_new or name.startswith("connection.")

        while True:
            request = self._request(call, content)
            if self._keeps:
                request.extensions["trace"] = trace
            try:
                return await self._http.send(request, stream=True)
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
                # on a new connection the server may have begun to work on the
                # request
                if is_new:
                    raise
                is_new = True

    def _request(self, call: Exchange, content: bytes | None) -> httpx2.Request:
        for name, value in call.headers.items():
            # checked here, since the library's own error would quote the value, a
            # credential
            if not (name.isascii() and is_header_value(value)):
                if name.isascii():
                    part = "a value that no header can have (not shown)"
                else:
                    part = "a name that is none"
                raise ConfigurationError(f"The header {name!r} has {part}")
        address = join_address(self.address, call.path)
        method = "POST"
        if content is None:
            method = "GET"
        try:
            request = self._http.build_request(
                method, address, content=content, headers=call.headers
            )
        except httpx2.InvalidURL as error:
            raise ConfigurationError(
                f"The address {shown_address(address)} cannot be asked: {error}"
            ) from None
        if content is not None:
            request.headers.setdefault("Content-Type", "application/json")
        return request

    def _raised(
        self, error: httpx2.RequestError | EventTooLongError | LLMError
    ) -> LLMError:
        """Return what failed as an error of the SDK. Tracebacks end here: what is below holds credentials."""
        if isinstance(error, LLMError):
            return error.with_traceback(None)
        if isinstance(error, httpx2.RequestError):
            raised = self._error(error)
            # what is chained below holds the request, and with it the headers
            error.__cause__ = error.__context__ = None
        else:
            raised = StreamError(f"The vendor sent too much: {error}")
        raised.__cause__ = error.with_traceback(None)
        return raised

    def _error(self, error: httpx2.RequestError) -> LLMError:
        match error:
            case httpx2.LocalProtocolError():
                return ConfigurationError(
                    "The request cannot be sent: a header's name or value is not allowed"
                )
            case httpx2.ConnectError() | httpx2.ConnectTimeout():
                where = f"{shown_address(self.address)}{self._way}"
                return NetworkError(
                    f"The vendor cannot be reached at {where}: {_words(error)}"
                )
            case httpx2.ProxyError():
                return NetworkError(
                    f"The proxy does not let the request through: {_words(error)}"
                )
            case _:
                return StreamError(
                    f"The connection to the vendor broke: {_words(error)}"
                )


@attrs.define(eq=False)
class _TimeLimits:
    """How long an exchange may still take, and be silent."""

    total: float
    idle: float
    left: float = attrs.field(
        default=attrs.Factory(lambda self: self.total, takes_self=True)
    )

    async def wait(self, step: Callable[[Unpack[Ts]], Awaitable[T]], *args: *Ts) -> T:
        """Take one step, which raises `LLMTimeoutError` when it takes too long."""
        started = anyio.current_time()
        # the shorter of both limits ends the wait, and which one it was decides
        # the message
        with anyio.CancelScope(deadline=started + min(self.left, self.idle)):
            result = await step(*args)
            self.left -= anyio.current_time() - started
            return result
        if self.idle <= self.left:
            raise LLMTimeoutError(
                f"The vendor was silent for {self.idle:g} s (`idle_timeout`)"
            )
        raise LLMTimeoutError(
            f"The answer took longer than {self.total:g} s (`timeout`)"
        )


async def _check(
    response: httpx2.Response, call: Exchange, limits: _TimeLimits
) -> None:
    """Raise the error of a refusal."""
    if response.status_code >= 300:
        body = await _beginning(response, limits, _LONGEST_REFUSAL)
        raise call.refuse(response.status_code, response.headers, body)
    if call.heard is not None:
        call.heard(response.headers)


async def _decoder(
    response: httpx2.Response, call: Exchange, limits: _TimeLimits, framing: Framing
) -> EventDecoder | LineDecoder:
    """Return what reads the stream, if it is one.

    Raises:
        LLMError: it is a page or one JSON text, as gateways send for an error with the status of a success.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    # only what certainly is no stream is refused: many gateways name the wrong
    # type
    if kind not in _NO_STREAMS[framing]:
        if framing == "sse":
            return EventDecoder()
        return LineDecoder()
    body = await _beginning(response, limits, _LONGEST_REFUSAL)
    if is_error(body):
        raise call.refuse(status_of(body), response.headers, body)
    words = body.decode("utf-8", "replace")[:200]
    raise StreamError(
        f"The vendor answered with {kind}, not with a stream; is `base_url` right? It says {words!r}",
        retryable=False,
    )


async def _pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Yield an answer unpacked, a little at a time: a packed one may have no end, and others must run meanwhile.

    Raises:
        StreamError: it is packed more than once, as no vendor does: little unpacks to gigabytes then.
    """
    packed = response.headers.get("content-encoding", "")
    if "," in packed:
        raise StreamError(
            f"The vendor sent what is packed more than once: {packed[:200]!r}",
            retryable=False,
        )
    async with ending(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            for start in range(0, len(piece), _MAX_AT_ONCE):
                # unpacking needs no await, and would keep other tasks from
                # running
                await anyio.lowlevel.checkpoint()
                yield piece[start : start + _MAX_AT_ONCE]


async def _next(pieces: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(pieces, None)


async def _beginning(
    response: httpx2.Response, limits: _TimeLimits, longest: int
) -> bytes:
    body = bytearray()
    async with aclosing(_pieces(response)) as pieces:
        # what is longer is cut: of a refusal the beginning says enough
        while (
            len(body) < longest
            and (piece := await limits.wait(_next, pieces)) is not None
        ):
            body += piece
    return bytes(body[:longest])


async def _drain(pieces: AsyncGenerator[bytes, None]) -> None:
    """Take off what follows the end marker, which is next to nothing: the connection can be used again then.

    A connection that breaks there takes nothing from the answer, which is whole.
    """
    with suppress(httpx2.RequestError), anyio.move_on_after(_REST):
        async for _ in pieces:
            pass


async def _close(response: httpx2.Response) -> None:
    with anyio.move_on_after(_CLOSE, shield=True):
        await response.aclose()


def _words(error: httpx2.RequestError) -> str:
    if isinstance(error, httpx2.ConnectTimeout):
        return f"nothing answered in {_CONNECT:g} s; check the address and the network"
    if errno.ECONNREFUSED in _numbers(error):
        return "nothing listens there; check the address, and that the server runs"
    return str(error) or "it was closed"


def _numbers(error: BaseException | None) -> Iterator[int | None]:
    """Yield the system's numbers of what led to an error; several addresses of a host are several errors."""
    while error is not None:
        if isinstance(error, OSError):
            yield error.errno
        for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _numbers(inner)
        error = error.__cause__ or error.__context__
