"""The client over real sockets."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

import anyio
import anyio.lowlevel
import attrs
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from amplifier_kit.http.sse import Comment, ServerEvent
from amplifier_kit.vendors import Exchange, VendorClient, refusal
from amplifier_kit.vendors.transport import network
from amplifier_sdk.errors import ConfigurationError, LLMError, NetworkError, StreamError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"

Talk: TypeAlias = Callable[[SocketStream], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


WHOLE = HEAD + chunk(b"data: one\n\ndata: end\n\n") + END


@attrs.define
class Server:
    """Counts its connections, and talks over each as a test says."""

    port: int
    connections: int = 0
    left: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address_to_keep(self) -> str:
        """An address of this machine that does not look like one: connections to it are kept."""
        return f"http://0.0.0.0:{self.port}"


@asynccontextmanager
async def serving(*talks: Talk) -> AsyncIterator[Server]:
    """Serve connections; the last talk is for all further ones."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        server = Server(listener.extra(SocketAttribute.local_port))

        async def handle(stream: SocketStream) -> None:
            server.connections += 1
            async with stream:
                try:
                    await talks[min(server.connections, len(talks)) - 1](stream)
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    server.left.set()

        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, handle)
            yield server
            group.cancel_scope.cancel()


async def read_request(stream: SocketStream) -> None:
    """Read one request, whose body is an object without another in it."""
    data = b""
    while not data.endswith(b"}"):
        data += await stream.receive()


async def answer_all(stream: SocketStream) -> None:
    while True:
        await read_request(stream)
        await stream.send(WHOLE)


async def answer_with_more_behind(stream: SocketStream) -> None:
    while True:
        await read_request(stream)
        await stream.send(
            HEAD + chunk(b"data: end\n\n") + chunk(b"data: more\n\n") + END
        )


async def answer_one_and_hang_up(stream: SocketStream) -> None:
    """Answer, and close the connection when it is used again."""
    await read_request(stream)
    await stream.send(WHOLE)
    await read_request(stream)


async def hang_up(stream: SocketStream) -> None:
    await read_request(stream)


async def begin(stream: SocketStream) -> None:
    """Begin an answer, and wait until the reader leaves."""
    await read_request(stream)
    await stream.send(HEAD + chunk(b"data: one\n\n"))
    await stream.receive()


async def break_off_behind_the_end(stream: SocketStream) -> None:
    """Send the end marker, and close the connection before the answer's own end."""
    await read_request(stream)
    await stream.send(HEAD + chunk(b"data: one\n\ndata: end\n\n"))


def packing(data: bytes, encoding: bytes) -> Talk:
    """Answer with packed bytes."""

    async def answer(stream: SocketStream) -> None:
        await read_request(stream)
        head = HEAD.replace(
            b"\r\n\r\n", b"\r\nContent-Encoding: " + encoding + b"\r\n\r\n"
        )
        await stream.send(head + chunk(data) + END)

    return answer


def refuse(status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
    return refusal(status, headers, body)


async def ask(client: VendorClient) -> list[str]:
    """Ask once, and return the events up to the end marker."""
    seen: list[str] = []
    call = Exchange(
        path="ask", body={"a": 1}, refuse=refuse, is_over=lambda: seen[-1:] == ["end"]
    )
    async with aclosing(client.events(call)) as events:
        async for event in events:
            assert isinstance(event, ServerEvent)
            seen.append(event.data)
    return seen


async def test_a_connection_is_kept_for_the_next_request() -> None:
    with anyio.fail_after(10):
        async with serving(answer_all) as server:
            client = VendorClient.open(server.address_to_keep)
            for _ in range(3):
                assert await ask(client) == ["one", "end"]
            await client.aclose()

    assert server.connections == 1


async def test_what_stands_behind_the_end_marker_is_taken_off_unread() -> None:
    with anyio.fail_after(10):
        async with serving(answer_with_more_behind) as server:
            client = VendorClient.open(server.address_to_keep)
            for _ in range(3):
                assert await ask(client) == ["end"]
            await client.aclose()

    assert server.connections == 1


async def test_connections_to_this_machine_are_not_kept() -> None:
    with anyio.fail_after(10):
        async with serving(answer_all) as server:
            client = VendorClient.open(server.address)
            for _ in range(3):
                assert await ask(client) == ["one", "end"]
            await client.aclose()

    assert server.connections == 3


async def test_a_kept_connection_that_is_closed_is_made_anew() -> None:
    with anyio.fail_after(10):
        async with serving(answer_one_and_hang_up) as server:
            client = VendorClient.open(server.address_to_keep)
            for _ in range(3):
                assert await ask(client) == ["one", "end"]
            await client.aclose()

    assert server.connections == 3


async def test_a_new_connection_that_is_closed_is_an_error() -> None:
    with anyio.fail_after(10):
        async with serving(hang_up) as server:
            client = VendorClient.open(server.address_to_keep)
            with pytest.raises(StreamError, match="The connection to the vendor broke"):
                await ask(client)
            await client.aclose()

    assert server.connections == 1


async def test_answer_is_complete_if_connection_breaks_after_end() -> None:
    with anyio.fail_after(10):
        async with serving(break_off_behind_the_end) as server:
            client = VendorClient.open(server.address)
            assert await ask(client) == ["one", "end"]
            await client.aclose()


async def test_others_run_while_a_packed_answer_unpacks() -> None:
    comments = 4_000
    packed = gzip.compress((b":" + b"x" * 1_000 + b"\n") * comments + b"data: end\n\n")
    rounds = 0

    async def run_round() -> None:
        nonlocal rounds
        while True:
            await anyio.lowlevel.checkpoint()
            rounds += 1

    seen: list[ServerEvent | Comment] = []
    with anyio.fail_after(10):
        async with (
            serving(packing(packed, b"gzip")) as server,
            anyio.create_task_group() as group,
        ):
            client = VendorClient.open(server.address)
            async with aclosing(
                client.events(Exchange(path="ask", body={"a": 1}, refuse=refuse))
            ) as events:
                seen.append(await anext(events))
                group.start_soon(run_round)
                seen += [event async for event in events]
            group.cancel_scope.cancel()
            await client.aclose()

    assert len(seen) == comments + 1
    assert rounds > 200


async def test_an_answer_that_is_packed_twice_is_refused() -> None:
    packed = gzip.compress(gzip.compress(b"data: end\n\n"))
    with anyio.fail_after(10):
        async with serving(packing(packed, b"gzip, gzip")) as server:
            client = VendorClient.open(server.address)
            with pytest.raises(
                StreamError, match="packed more than once: 'gzip, gzip'"
            ):
                await ask(client)
            await client.aclose()


async def test_leaving_early_closes_the_connection() -> None:
    with anyio.fail_after(10):
        async with serving(begin) as server:
            client = VendorClient.open(server.address_to_keep)
            call = Exchange(path="ask", body={"a": 1}, refuse=refuse)
            async with aclosing(client.events(call)) as events:
                async for _ in events:
                    break
            await server.left.wait()
            await client.aclose()


async def test_a_cancellation_closes_the_connection() -> None:
    with anyio.fail_after(10):
        async with serving(begin) as server:
            client = VendorClient.open(server.address)
            seen = anyio.Event()

            async def read() -> None:
                async with aclosing(
                    client.events(Exchange(path="ask", body={"a": 1}, refuse=refuse))
                ) as events:
                    async for _ in events:
                        seen.set()

            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await seen.wait()
                group.cancel_scope.cancel()
            await server.left.wait()
            await client.aclose()


async def test_nobody_there_is_said_with_the_address() -> None:
    async with serving(hang_up) as server:
        pass
    client = VendorClient.open(server.address)

    with pytest.raises(
        NetworkError,
        match=f"cannot be reached at {server.address}: nothing listens there",
    ):
        await ask(client)

    await client.aclose()


async def test_a_proxy_that_is_not_there_is_named() -> None:
    async with serving(hang_up) as server:
        pass
    client = VendorClient.open(
        "http://acme.example/v1", proxy=f"http://me:secret@127.0.0.1:{server.port}"
    )

    with pytest.raises(NetworkError, match="through the proxy") as raised:
        await ask(client)

    assert f"(withheld)@127.0.0.1:{server.port}: " in str(raised.value)
    await client.aclose()


async def test_an_address_where_nothing_answers_is_said() -> None:
    class Silent(httpx2.AsyncBaseTransport):
        async def handle_async_request(
            self, request: httpx2.Request
        ) -> httpx2.Response:
            raise httpx2.ConnectTimeout("timed out")

    client = VendorClient.open("https://acme.example/v1", transport=Silent())

    with pytest.raises(NetworkError, match=r"nothing answered in .* check the address"):
        await ask(client)

    await client.aclose()


@pytest.mark.parametrize(
    "address", ["http://999.1.1.1", "http://\u2488.example", "http://[v1.a]"]
)
async def test_an_address_that_cannot_be_asked_is_said(address: str) -> None:
    client = VendorClient.open(address)

    with pytest.raises(ConfigurationError, match="cannot be asked: Invalid"):
        await ask(client)

    await client.aclose()


@pytest.mark.parametrize(
    ("name", "value"), [("X-Na\u00efve", "1"), ("X-Key", "a\u00e4"), ("X-Key", "a\nb")]
)
async def test_a_header_that_cannot_be_one_is_named_without_its_value(
    name: str, value: str
) -> None:
    client = VendorClient.open("http://127.0.0.1:9")

    with pytest.raises(
        ConfigurationError, match=f"The header '{name}' has a (value|name) that"
    ) as raised:
        await client.json(Exchange(path="ask", headers={name: value}, refuse=refuse))

    assert repr(value) not in str(raised.value)
    await client.aclose()


async def test_certificates_are_loaded_for_https_alone() -> None:
    for address, proxy in (
        ("https://acme.example", None),
        ("http://acme.example", "http://proxy.example:3128"),
    ):
        await network(address, proxy=proxy).aclose()
