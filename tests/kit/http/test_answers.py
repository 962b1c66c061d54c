"""A body that is left before its end leaves nothing to the garbage collector, of which trio warns."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from amplifier_kit.http.answers import ending

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
PIECE = b"1\r\nx\r\n"


@pytest.mark.parametrize("at_once", [1, 500], ids=["waits", "has more"])
async def test_a_body_ends_where_it_is_left(at_once: int) -> None:
    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(HEAD + at_once * PIECE)
            # until the client goes
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        async with httpx2.AsyncClient() as client:
            request = client.build_request("GET", f"http://127.0.0.1:{port}/")
            response = await client.send(request, stream=True)
            with anyio.fail_after(20):
                async with ending(response.aiter_raw()) as pieces:
                    first = await anext(pieces)
                await response.aclose()
        gc.collect()  # what it warns of fails the test
        group.cancel_scope.cancel()

    assert first == b"x"


async def test_a_body_without_an_end_is_left_all_the_same() -> None:
    left = False

    async def endless() -> AsyncGenerator[bytes, None]:
        nonlocal left
        try:
            while True:
                yield b""
        finally:
            left = True

    async with ending(endless()) as pieces:
        await anext(pieces)

    assert left
