"""The transport to a server at an address: messages in HTTP requests, answers in JSON or in a stream of events.

Nothing of the environment is used: no proxy, no credentials. A redirect is followed within the address's origin only,
and never with another method. Source: the transport "Streamable HTTP" of the protocol.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final

import anyio
import attrs
import httpx2
from anyio import to_thread
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from amplifier_module_tool_mcp.carrying import Carrier, TooLongError
from amplifier_module_tool_mcp.links import SESSION_ENDED
from amplifier_sdk.kit.netguard import WebError
from amplifier_sdk.kit.sse import EventDecoder, EventTooLongError, ServerEvent

__all__ = ["WebLink"]

_ACCEPTED: Final = "application/json, text/event-stream"
_EVENTS: Final = "text/event-stream"
_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_STATELESS: Final = "2026-"
_MOST_TRIES: Final = 3
_RETRY_SECONDS: Final = 1.0
_LEAVING_SECONDS: Final = 1.0

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]


@attrs.define(eq=False, kw_only=True)
class WebLink:
    """One connection to an address.

    Args:
        url: the endpoint.
        headers: sent with every request.
        max_bytes: the longest message.
        timeout: seconds that connecting and sending may take.
        public_only: whether the address must be public, since no person but a project's file says it.
        problem: what went wrong last, in words.
        ended: set when the connection cannot go on.
    """

    url: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    max_bytes: int
    timeout: float
    public_only: bool
    problem: str | None = None
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    _session: str | None = None
    _version: str | None = None
    _posts: dict[object, anyio.CancelScope] = attrs.field(factory=dict)

    def transport(self) -> Transport:
        """Return what the protocol's client opens, once."""
        return self._open()

    @asynccontextmanager
    async def _open(
        self,
    ) -> AsyncGenerator[
        tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]], None
    ]:
        # Reading certificates takes a tenth of a second.
        carrier = await to_thread.run_sync(Carrier.to, self.url, self.headers, self.timeout, self.public_only)
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
        async with carrier:
            with incoming, received, outgoing, to_send:
                async with anyio.create_task_group() as posts:
                    posts.start_soon(self._send_all, carrier, to_send, incoming, posts)
                    try:
                        yield received, outgoing
                        await self._leave(carrier)
                    finally:
                        posts.cancel_scope.cancel()

    async def _leave(self, carrier: Carrier) -> None:
        """Tell the server that its session is over."""
        if self._session is not None:
            with anyio.move_on_after(_LEAVING_SECONDS), suppress(httpx2.HTTPError, WebError, TooLongError):
                async with carrier.send("DELETE", self._request_headers()):
                    pass

    async def _send_all(
        self,
        carrier: Carrier,
        to_send: MemoryObjectReceiveStream[SessionMessage],
        incoming: _Incoming,
        posts: TaskGroup,
    ) -> None:
        async for item in to_send:
            message = item.message
            told = item.metadata.headers if isinstance(item.metadata, ClientMessageMetadata) else None
            if isinstance(message, JSONRPCRequest) and message.method == "initialize":
                self._version = None
            self._version = (told or {}).get(_VERSION, self._version)
            headers = {**self._request_headers(), **(told or {})}
            if isinstance(message, JSONRPCRequest):
                self._posts[message.id] = anyio.CancelScope()
                posts.start_soon(self._ask, carrier, message, headers, incoming)
            elif not self._is_hung_up(message):
                posts.start_soon(self._tell, carrier, message, headers)
                if isinstance(message, JSONRPCNotification) and message.method == "notifications/initialized":
                    posts.start_soon(self._listen, carrier, incoming)

    def _request_headers(self) -> dict[str, str]:
        found = {"Accept": _ACCEPTED, "Content-Type": "application/json"}
        if self._session is not None:
            found[_SESSION] = self._session
        if self._version is not None:
            found[_VERSION] = self._version
        return found

    def _is_hung_up(self, message: JSONRPCMessage) -> bool:
        """Cancel a request by leaving its answer, where the protocol's version knows no other way."""
        if not isinstance(message, JSONRPCNotification) or message.method != "notifications/cancelled":
            return False
        scope = self._posts.get((message.params or {}).get("requestId"))
        if scope is None or not (self._version or "").startswith(_STATELESS):
            return False
        scope.cancel()
        return True

    async def _tell(self, carrier: Carrier, message: JSONRPCMessage, headers: Mapping[str, str]) -> None:
        with suppress(httpx2.HTTPError, WebError, TooLongError):  # the request that it is about tells of it
            async with carrier.send("POST", headers, _written(message)):
                pass

    async def _ask(
        self, carrier: Carrier, message: JSONRPCRequest, headers: Mapping[str, str], incoming: _Incoming
    ) -> None:
        """Send a request and pass its answer on; whatever goes wrong is an answer as well."""
        with self._posts[message.id]:
            try:
                answered = await self._exchange(carrier, message, headers, incoming)
                problem, code = "SSE stream ended without an answer", CONNECTION_CLOSED
            except (httpx2.HTTPError, WebError, TooLongError, EventTooLongError, _AnswerError, ValueError) as error:
                problem, code = str(error) or type(error).__name__, INTERNAL_ERROR
                answered = False
            if answered:
                self.problem = None
            else:
                self.problem = problem
                told = INVALID_REQUEST if problem == SESSION_ENDED else code
                await _pass_on(
                    JSONRPCError(jsonrpc="2.0", id=message.id, error=ErrorData(code=told, message=problem)), incoming
                )
        self._posts.pop(message.id, None)

    async def _exchange(
        self, carrier: Carrier, message: JSONRPCRequest, headers: Mapping[str, str], incoming: _Incoming
    ) -> bool:
        """Send a request, and return whether it was answered.

        Raises:
            _AnswerError: by something that is no answer.
        """
        async with carrier.send("POST", headers, _written(message)) as response:
            if message.method == "initialize":
                self._session = response.headers.get(_SESSION)
            kind = response.headers.get("content-type", "").lower()
            if response.status_code == 200 and kind.startswith(_EVENTS):
                events = EventDecoder(max_bytes=self.max_bytes)
                if await self._read_events(response, events, message, incoming):
                    return True
            else:
                answer = self._answer(response, await carrier.read(response, self.max_bytes), message)
                await _pass_on(answer, incoming)
                return True
        return await self._resume(carrier, events.last_id, message, incoming)

    def _answer(self, response: httpx2.Response, data: bytes, message: JSONRPCRequest) -> JSONRPCMessage:
        """Read a body as the answer to a request; servers answer with errors and a status of failure as well."""
        if response.status_code == 404 and self._session is not None:
            raise _AnswerError(SESSION_ENDED)
        if response.is_redirect:
            raise _AnswerError(f"it leads to {response.headers.get('location', '')!a:.200}, which is not followed")
        is_json = response.headers.get("content-type", "").lower().startswith("application/json")
        try:
            answer = _read(data) if is_json else None
        except ValueError as error:
            answer, is_json = None, False
            if response.status_code == 200:
                raise _AnswerError(f"its answer cannot be read: {error}") from error
        if isinstance(answer, (JSONRPCResponse, JSONRPCError)):
            return answer.model_copy(update={"id": message.id})
        if response.status_code != 200:
            raise _AnswerError(f"it answers with status {response.status_code}")
        raise _AnswerError(f"it answers with {response.headers.get('content-type', 'no content type')!a:.100}")

    async def _read_events(
        self, response: httpx2.Response, events: EventDecoder, message: JSONRPCRequest | None, incoming: _Incoming
    ) -> bool:
        """Pass on what comes in events, and return whether the answer to a request was among it."""
        async with aclosing(response.aiter_raw()) as pieces:
            async for piece in pieces:
                for event in events.feed(piece):
                    if not isinstance(event, ServerEvent) or event.event != "message":
                        continue
                    found = _read(event.data.encode())
                    is_answer = isinstance(found, (JSONRPCResponse, JSONRPCError))
                    if is_answer and message is not None:
                        found = found.model_copy(update={"id": message.id})
                    await _pass_on(found, incoming)
                    if is_answer and message is not None:
                        return True
        return False

    async def _resume(
        self, carrier: Carrier, last: str | None, message: JSONRPCRequest | None, incoming: _Incoming
    ) -> bool:
        """Ask for the rest of a stream that broke off."""
        for _ in range(_MOST_TRIES if last is not None else 0):
            await anyio.sleep(_RETRY_SECONDS)
            headers = {**self._request_headers(), "Accept": _EVENTS, "Last-Event-ID": last or ""}
            async with carrier.send("GET", headers) as response:
                if response.status_code != 200:
                    return False
                events = EventDecoder(max_bytes=self.max_bytes)
                if await self._read_events(response, events, message, incoming):
                    return True
                last = events.last_id or last
        return False

    async def _listen(self, carrier: Carrier, incoming: _Incoming) -> None:
        """Hear what the server says unasked, where it has a stream for that."""
        headers = {**self._request_headers(), "Accept": _EVENTS}
        with suppress(httpx2.HTTPError, WebError, ValueError):
            async with carrier.send("GET", headers) as response:
                events = EventDecoder(max_bytes=self.max_bytes)
                if response.status_code != 200:
                    return
                await self._read_events(response, events, None, incoming)
            await self._resume(carrier, events.last_id, None, incoming)


class _AnswerError(Exception):
    """A server's answer is none; says why."""


def _written(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _read(data: bytes) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_json(data, by_name=False)


async def _pass_on(message: JSONRPCMessage, incoming: _Incoming) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody waits for it any more
        await incoming.send(SessionMessage(message))
