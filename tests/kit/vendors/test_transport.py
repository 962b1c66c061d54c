"""Answers that may be left early, also by a reader that is cancelled."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import httpx2

from amplifier_kit.vendors.transport import ClosingStream


class Connection(httpx2.AsyncByteStream):
    """A stream as the library has it: reading on after it was closed ends it."""

    def __init__(self) -> None:
        self.is_closed = False
        self.has_ended = False

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        try:
            while not self.is_closed:
                yield b"piece"
            raise httpx2.ReadError("closed")
        finally:
            self.has_ended = True

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.is_closed = True


async def test_a_stream_that_is_left_early_leaves_no_generator_behind() -> None:
    connection = Connection()
    pieces = aiter(ClosingStream(connection))

    assert await anext(pieces) == b"piece"
    await pieces.aclose()

    assert connection.is_closed
    assert connection.has_ended


async def test_a_stream_is_closed_where_its_reader_was_cancelled() -> None:
    connection = Connection()
    pieces = aiter(ClosingStream(connection))

    assert await anext(pieces) == b"piece"
    with anyio.CancelScope() as scope:
        scope.cancel()
        await pieces.aclose()

    assert connection.is_closed
    assert connection.has_ended
