"""The body of an answer, read as far as somebody wants it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

__all__ = ["ending"]

_RECEIVED: Final = 65_536
"""Bytes that may have been received and are returned without a read."""


@asynccontextmanager
async def ending(
    pieces: AsyncGenerator[bytes, None],
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """Read a body in a block, and end it behind that, as `contextlib.aclosing` ends a generator.

    Where a body of `httpx2` is closed before its end, generators within it are left to the garbage collector, of which
    trio warns. A read that is cancelled ends all of them.

    Args:
        pieces: what `httpx2.Response.aiter_raw`, for example, returned.
    """
    try:
        yield pieces
    finally:
        left = _RECEIVED
        with anyio.CancelScope() as scope:
            scope.cancel()
            while left > 0 and (piece := await anext(pieces, None)) is not None:
                left -= max(1, len(piece))
        await pieces.aclose()
