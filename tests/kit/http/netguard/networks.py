"""A network that is not there: names, connections and answers are scripted, and every connection is counted."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping, Sequence

import anyio
import attrs
import httpcore2

from amplifier_kit.http.netguard import Connector, Fetcher, NetPolicy

__all__ = ["Network", "Stream", "page"]


@attrs.define(eq=False)
class Stream(httpcore2.AsyncNetworkStream):
    """A connection that answers with what it was given, a piece a read; `None` keeps silent for ever."""

    network: Network
    pieces: list[bytes | None]
    is_closed: bool = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if piece is None:
            try:
                with anyio.fail_after(timeout):
                    await anyio.sleep_forever()
            except TimeoutError:
                raise httpcore2.ReadTimeout from None
        assert piece is not None
        if len(piece) > max_bytes:
            self.pieces.insert(0, piece[max_bytes:])
        return piece[:max_bytes]

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.network.sent += buffer

    async def aclose(self) -> None:
        self.is_closed = True

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        assert ssl_context.verify_mode is ssl.CERT_REQUIRED
        assert ssl_context.check_hostname
        if server_hostname in self.network.untrusted:
            raise httpcore2.ConnectError("certificate verify failed")
        self.network.names.append(server_hostname or "")
        return self


@attrs.define(eq=False)
class Network(httpcore2.AsyncNetworkBackend):
    """The scripted network.

    `hosts` says which addresses a name leads to, `moving` what it leads to at one time after the other; `answers` are
    what the connections answer, in their order.
    """

    hosts: dict[str, list[str]] = attrs.field(factory=dict)
    moving: dict[str, list[list[str]]] = attrs.field(factory=dict)
    answers: list[Iterable[bytes | None] | Exception] = attrs.field(factory=list)
    connected: list[tuple[str, int]] = attrs.field(factory=list)
    looked_up: list[str] = attrs.field(factory=list)
    names: list[str] = attrs.field(factory=list)
    untrusted: Sequence[str] = ()
    streams: list[Stream] = attrs.field(factory=list)
    sent: bytes = b""

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        if self.moving.get(host):
            return self.moving[host].pop(0)
        if host not in self.hosts:
            raise OSError("Name or service not known")
        return self.hosts[host]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.connected.append((host, port))
        answer = self.answers.pop(0) if self.answers else [page()]
        if isinstance(answer, Exception):
            raise answer
        self.streams.append(Stream(self, list(answer)))
        return self.streams[-1]

    def fetcher(
        self,
        policy: NetPolicy | None = None,
        *,
        max_redirects: int = 5,
        idle_timeout: float = 5.0,
    ) -> Fetcher:
        """Make a fetcher whose network this is."""
        connector = Connector(
            policy=policy or NetPolicy(), look_up=self.look_up, backend=self
        )
        return Fetcher(
            connector=connector, max_redirects=max_redirects, idle_timeout=idle_timeout
        )


def page(
    body: bytes = b"hello",
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
    *,
    length: bool = True,
) -> bytes:
    """Write an answer as it goes over the wire."""
    lines = {"Content-Length": str(len(body))} if length else {}
    head = "".join(
        f"{name}: {value}\r\n" for name, value in {**lines, **(headers or {})}.items()
    )
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body
