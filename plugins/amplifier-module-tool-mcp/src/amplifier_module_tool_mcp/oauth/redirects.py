"""The end of signing in: the browser comes back to a port of this machine, with a code.

The port is free, the path is a random word, and both are new each time, so that no other authorization server is ever
given the same address. What does not carry the state that was sent is not listened to.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

import anyio
import attrs
from anyio.abc import SocketAttribute, SocketStream

__all__ = ["RedirectListener", "Returned"]

_HOST: Final = "127.0.0.1"
_MAX_BYTES: Final = 16_384
_SECONDS: Final = 10.0
_MAX_CONNECTIONS: Final = 16
_PAGE: Final = "You can close this window, and return to the terminal.\n"


@attrs.frozen(kw_only=True)
class Returned:
    """What the browser brought.

    Args:
        code: the code, or empty.
        state: the state that was sent.
        issuer: who says that it gave the code; `None` where nobody does.
        error: why there is no code.
    """

    code: str = attrs.field(default="", repr=False)
    state: str = attrs.field(repr=False)
    issuer: str | None = None
    error: str | None = None


@attrs.define(eq=False)
class RedirectListener:
    """Listens on this machine until the browser comes back; `uri` is where."""

    uri: str
    _authority: str
    _state: str | None = None
    _came: anyio.Event = attrs.field(factory=anyio.Event)
    _returned: Returned | None = None
    _seats: anyio.CapacityLimiter = attrs.field(
        factory=lambda: anyio.CapacityLimiter(_MAX_CONNECTIONS)
    )

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncGenerator[Self, None]:
        """Yield a listener at an address of its own; it stops with the block."""
        async with await anyio.create_tcp_listener(local_host=_HOST) as listener:
            port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # no database's
            authority = f"{_HOST}:{port}"
            found = cls(f"http://{authority}/{secrets.token_urlsafe(16)}", authority)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, found._answer)
                yield found
                tasks.cancel_scope.cancel()

    def expect(self, address: str) -> None:
        """Listen to what carries the state of an authorization request, and to nothing else."""
        self._state = parse_qs(urlsplit(address).query)["state"][0]

    async def returned(self) -> Returned:
        """Wait for the browser."""
        await self._came.wait()
        assert self._returned is not None
        return self._returned

    async def _answer(self, stream: SocketStream) -> None:
        async with stream, self._seats:
            with anyio.move_on_after(_SECONDS):
                try:
                    status, found = self._read(await _head_of(stream))
                    body = _PAGE if found is not None else ""
                    await stream.send(
                        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
                        f"Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
                    )
                except (anyio.BrokenResourceError, anyio.EndOfStream):
                    return
                if found is not None and self._returned is None:
                    self._returned = found
                    self._came.set()

    def _read(self, head: bytes) -> tuple[str, Returned | None]:
        """Read a request: the status of the answer, and what the browser brought if it did."""
        lines = head.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        place = urlsplit(rest.partition(" ")[0])
        hosts = [
            value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
            if name.lower() == "host"
        ]
        # A page that names this machine by a name of its own has another host.
        if method != "GET" or hosts != [self._authority]:
            return "400 Bad Request", None
        if not secrets.compare_digest(place.path, urlsplit(self.uri).path):
            return "404 Not Found", None
        fields = parse_qs(place.query, keep_blank_values=True)
        if any(len(values) > 1 for values in fields.values()):
            return "400 Bad Request", None
        state = fields.get("state", [""])[0]
        if self._state is None or not secrets.compare_digest(
            state.encode(), self._state.encode()
        ):
            return "400 Bad Request", None
        return "200 OK", Returned(
            code=fields.get("code", [""])[0],
            state=state,
            issuer=fields.get("iss", [None])[0],
            error=fields.get("error", [None])[0],
        )


async def _head_of(stream: SocketStream) -> bytes:
    """Read the head of a request; the rest of one that is too long is never read."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _MAX_BYTES:
        head += await stream.receive(_MAX_BYTES)
    return head
