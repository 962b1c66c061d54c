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
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from amplifier_kit.http.netguard import WebError
from amplifier_kit.vendors.headers import is_header_value
from amplifier_module_tool_mcp.answers import (
    EVENTS,
    JSON,
    AnswerError,
    LoginNeededError,
    content_type,
    read_answer,
)
from amplifier_module_tool_mcp.http_transport import Carrier
from amplifier_module_tool_mcp.oauth.authorization import Authorization
from amplifier_module_tool_mcp.results import NoAnswer
from amplifier_module_tool_mcp.streams import EventStream
from amplifier_module_tool_mcp.wire import (
    Incoming,
    MessageTooLargeError,
    Outgoing,
    Streams,
    UnexpectedMessages,
    pass_on,
    unanswered,
    write_message,
)

__all__ = ["WebLink"]

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_MAX_TRIES: Final = 3
_LEAVING_SECONDS: Final = 1.0
_PATIENT: Final = frozenset({"tools/call", "subscriptions/listen"})
"""The requests that are waited for until they are cancelled, however long nothing comes."""

_UNSENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    WebError,
    ValueError,
)
"""The failures with which nothing of a request has reached the server; `ValueError`: it cannot be written."""


@attrs.define(eq=False, kw_only=True)
class WebLink:
    """One connection to an address.

    Args:
        url: the endpoint.
        headers: sent with every request.
        max_bytes: the longest message.
        timeout: seconds that connecting and sending may take.
        public_only: whether the address must be public, since no person but a project's file says it.
        authorization: the person's at this server; `None` where the headers have their own.
        needs_login: whether the person has to sign in before it is of use.
        problem: what went wrong last, in words.
        ended: set when the connection cannot go on.
    """

    url: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    max_bytes: int
    timeout: float
    public_only: bool
    authorization: Authorization | None = None
    needs_login: bool = False
    problem: str | None = None
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    _session: str | None = None
    _version: str | None = None
    _posts: dict[object, anyio.CancelScope] = attrs.field(factory=dict)
    _unasked: UnexpectedMessages = attrs.field(factory=UnexpectedMessages)

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[Streams, None]:
        """Open the connection for the protocol's client, once; the server is notified when it is left in order."""
        # Reading certificates takes a tenth of a second.
        carrier = await to_thread.run_sync(
            Carrier.to,
            self.url,
            self.headers,
            self.timeout,
            self.public_only,
            None if self.authorization is None else self.authorization.bearer,
        )
        incoming, received = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ](0)
        outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
        async with carrier:
            with incoming, received, outgoing, to_send:
                async with anyio.create_task_group() as posts:
                    posts.start_soon(self._send_all, carrier, to_send, incoming, posts)
                    try:
                        yield received, outgoing
                        # Not after an error: a server that does not answer would be
                        # waited for once more.
                        await self._leave(carrier)
                    finally:
                        posts.cancel_scope.cancel()

    async def _leave(self, carrier: Carrier) -> None:
        """Tell the server that its session is over."""
        if self._session is not None:
            with (
                anyio.move_on_after(_LEAVING_SECONDS),
                suppress(httpx2.HTTPError, WebError, LoginNeededError),
            ):
                async with carrier.send("DELETE", self._request_headers()):
                    pass

    # -- sending

    async def _send_all(
        self, carrier: Carrier, to_send: Outgoing, incoming: Incoming, posts: TaskGroup
    ) -> None:
        async for item in to_send:
            message = item.message
            given = None
            if isinstance(item.metadata, ClientMessageMetadata):
                given = item.metadata.headers
            if isinstance(message, JSONRPCRequest) and message.method == "initialize":
                # which version is spoken is settled anew by the answer
                self._version = None
            self._version = (given or {}).get(_VERSION, self._version)
            headers = {**self._request_headers(), **(given or {})}
            if isinstance(message, JSONRPCRequest):
                # before the task begins, so that a cancellation behind it finds the
                # scope
                self._posts[message.id] = anyio.CancelScope()
                posts.start_soon(self._ask, carrier, message, headers, incoming)
                continue
            if (
                isinstance(message, JSONRPCNotification)
                and message.method == "notifications/initialized"
            ):
                # before it servers need not answer
                await self._report(carrier, message, headers)
                posts.start_soon(self._listen, carrier, incoming)
                continue
            posts.start_soon(self._report, carrier, message, headers)

    def _request_headers(self) -> dict[str, str]:
        found = {"Accept": f"{JSON}, {EVENTS}", "Content-Type": JSON}
        if self._session is not None:
            found[_SESSION] = self._session
        if self._version is not None:
            found[_VERSION] = self._version
        return found

    async def _report(
        self, carrier: Carrier, message: JSONRPCMessage, headers: Mapping[str, str]
    ) -> None:
        """Send what has no answer; the answer to a request that is cancelled by it is waited for no more.

        In the versions of the protocol without sessions, leaving its answer is the only notification.
        """
        is_cancel = (
            isinstance(message, JSONRPCNotification)
            and message.method == "notifications/cancelled"
        )
        if not is_cancel or self._version not in MODERN_PROTOCOL_VERSIONS:
            # What fails here is reported by the request that it is about.
            with (
                suppress(httpx2.HTTPError, WebError, ValueError, AnswerError),
                anyio.move_on_after(self.timeout),
            ):
                async with carrier.send("POST", headers, write_message(message)):
                    pass
        if isinstance(message, JSONRPCNotification) and is_cancel:
            scope = self._posts.get((message.params or {}).get("requestId"))
            if scope is not None:
                scope.cancel()

    async def _ask(
        self,
        carrier: Carrier,
        message: JSONRPCRequest,
        headers: Mapping[str, str],
        incoming: Incoming,
    ) -> None:
        """Send a request and pass its answer on; whatever goes wrong is an answer as well."""
        with self._posts[message.id]:
            try:
                await self._exchange(carrier, message, headers, incoming)
                self.problem = None
            except (
                httpx2.HTTPError,
                WebError,
                MessageTooLargeError,
                ValueError,
                AnswerError,
            ) as error:
                self.problem = str(error) or type(error).__name__
                self.needs_login = isinstance(error, LoginNeededError)
                # a call that may have run is not made again unasked
                why = NoAnswer(may_have_run=not isinstance(error, _UNSENT))
                code = INTERNAL_ERROR
                if isinstance(error, AnswerError):
                    why, code = error.why, error.code
                await pass_on(unanswered(message.id, self.problem, why, code), incoming)
        self._posts.pop(message.id, None)

    # -- answers

    async def _exchange(
        self,
        carrier: Carrier,
        message: JSONRPCRequest,
        headers: Mapping[str, str],
        incoming: Incoming,
    ) -> None:
        """Send a request and pass its answer on.

        Raises:
            AnswerError: there is none.
        """
        stream = EventStream(self.max_bytes)
        is_patient = message.method in _PATIENT
        async with carrier.send(
            "POST", headers, write_message(message), is_patient=is_patient
        ) as response:
            if response.status_code == 401 and self.authorization is not None:
                raise LoginNeededError(self.authorization.name)
            if message.method == "initialize":
                self._session = response.headers.get(_SESSION)
                # It is sent back as a header, where a line break would begin another
                # one.
                if not is_header_value(self._session or ""):
                    self._session = None
                    raise AnswerError(
                        "the id that it gives the session cannot be sent back",
                        may_have_run=False,
                    )
            if response.status_code != 200 or not content_type(response).startswith(
                EVENTS
            ):
                data = await carrier.read(response, self.max_bytes)
                answer = read_answer(
                    response, data, message.id, has_session=self._session is not None
                )
                await pass_on(answer, incoming)
                return
            if await self._hear(stream, response, message, incoming):
                return
        if not await self._go_on(carrier, stream, message, incoming):
            raise AnswerError(
                "its stream of events ended without an answer", code=CONNECTION_CLOSED
            )

    async def _hear(
        self,
        stream: EventStream,
        response: httpx2.Response,
        request: JSONRPCRequest | None,
        incoming: Incoming,
    ) -> bool:
        """Pass on what comes in events; with the answer to a request return true, and false at the end."""
        async with aclosing(stream.messages(response)) as messages:
            async for found in messages:
                is_answer = isinstance(found, (JSONRPCResponse, JSONRPCError))
                if request is not None and is_answer:
                    # the stream belongs to this request alone, whatever id its answer
                    # carries
                    await pass_on(found.model_copy(update={"id": request.id}), incoming)
                    return True
                if is_answer or not self._unasked.is_too_much():
                    await pass_on(found, incoming)
        return False

    async def _go_on(
        self,
        carrier: Carrier,
        stream: EventStream,
        request: JSONRPCRequest | None,
        incoming: Incoming,
    ) -> bool:
        """Ask for the rest of a stream that ended, as long as something comes of it; return as `_hear` does.

        An answer can be asked for only where the server said by an id what it had sent.
        """
        left = _MAX_TRIES
        while left and (request is None or stream.last_id is not None):
            await anyio.sleep(stream.wait)
            left -= 1
            with suppress(
                httpx2.HTTPError, WebError, LoginNeededError
            ):  # it may be back a moment later
                async with carrier.send(
                    "GET", self._stream_headers(stream)
                ) as response:
                    # it is there and refuses, so that asking again changes nothing
                    if 300 <= response.status_code < 500:
                        return False
                    if response.status_code == 200 and await self._hear(
                        stream, response, request, incoming
                    ):
                        return True
                    if response.status_code == 200 and stream.was_of_use:
                        left = _MAX_TRIES
        return False

    async def _listen(self, carrier: Carrier, incoming: Incoming) -> None:
        """Hear what the server says unasked, where it has a stream for that."""
        stream = EventStream(self.max_bytes)
        with suppress(httpx2.HTTPError, WebError, MessageTooLargeError, AnswerError):
            async with carrier.send("GET", self._stream_headers(stream)) as response:
                if response.status_code != 200:
                    return
                await self._hear(stream, response, None, incoming)
            await self._go_on(carrier, stream, None, incoming)

    def _stream_headers(self, stream: EventStream) -> dict[str, str]:
        headers = {**self._request_headers(), "Accept": EVENTS}
        if stream.last_id is None:
            return headers
        return {**headers, "Last-Event-ID": stream.last_id}
