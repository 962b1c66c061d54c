"""The service over streamable HTTP: one path, one token, bounded messages, on asyncio and trio.

The protocol's library has the sessions of clients; what reaches it was let in by the token and is within bounds.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import compare_digest
from typing import TYPE_CHECKING, Final

import attrs
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from amplifier.mcp_server.service import McpService
from amplifier_kit.rpc.frames import INVALID_REQUEST, values_in
from amplifier_kit.rpc.received import RpcLimits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["PATH", "SHORTEST_TOKEN", "McpApplication", "http_application"]

PATH: Final = "/mcp"
"""Where the protocol is spoken."""

SHORTEST_TOKEN: Final = 24
"""The fewest characters of a token: nobody finds one by trying."""

_MAX_SESSIONS: Final = 32
_IDLE_SECONDS: Final = 1800.0


@asynccontextmanager
async def http_application(
    service: McpService, token: str, port: int, limits: RpcLimits
) -> AsyncIterator[McpApplication]:
    """Yield the application that serves the session; its clients' sessions end with the block.

    Args:
        service: what is served.
        token: what each request carries in `Authorization: Bearer`.
        port: the port of this machine at which it is reached; another host in a request is refused.
        limits: of one message.
    """
    hosts = [f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
    manager = StreamableHTTPSessionManager(
        service.server(),
        security_settings=TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[]
        ),
        session_idle_timeout=_IDLE_SECONDS,
        max_request_body_size=limits.max_bytes,
        max_sessions=_MAX_SESSIONS,
    )
    async with manager.run():
        yield McpApplication(manager.asgi_app, token.encode(), limits)


@attrs.frozen(eq=False)
class McpApplication:
    """Lets requests with the token through to the protocol.

    Args:
        protocol: answers what is let through.
        token: what a request carries.
        limits: of one message.
    """

    protocol: ASGIApp
    token: bytes = attrs.field(repr=False)
    limits: RpcLimits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or take part in the server's start and end."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            return
        if not self._is_let_in(scope):
            challenge = (b"www-authenticate", b'Bearer realm="amplifier"')
            await _refuse(send, 401, "a valid bearer token is needed", challenge)
            return
        if scope["path"] != PATH:
            await _refuse(send, 404, f"the protocol is at {PATH}")
            return
        body = await self._read(receive)
        if body is None:
            await _refuse(
                send, 413, f"a message has at most {self.limits.max_bytes} bytes"
            )
        elif values_in(body) > self.limits.max_values:
            await _refuse(
                send, 400, f"a message has at most {self.limits.max_values} values"
            )
        else:
            await self.protocol(scope, _replayed(body, receive), send)

    def _is_let_in(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and compare_digest(token.strip(), self.token)

    async def _read(self, receive: Receive) -> bytes | None:
        """Read the body; `None` when it is too long, whose rest is never read."""
        data = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(data)
            data += message.get("body", b"")
            if len(data) > self.limits.max_bytes:
                return None
            if not message.get("more_body", False):
                return bytes(data)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read, and then what comes after it."""
    is_given = False

    async def replayed() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _refuse(
    send: Send, status: int, problem: str, *headers: tuple[bytes, bytes]
) -> None:
    error = {"code": INVALID_REQUEST, "message": problem}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    length = (b"content-length", str(len(body)).encode())
    kind = (b"content-type", b"application/json")
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [kind, length, *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Receive, send: Send) -> None:
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})
