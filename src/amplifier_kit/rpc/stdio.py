"""Standard input and output as the two streams of a connection, which nothing else in the process writes to."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs
from anyio.abc import ByteReceiveStream, ByteSendStream

__all__ = ["DescriptorReader", "DescriptorWriter", "standard_streams"]

_PIECE: Final = 65_536
_ATOMIC: Final = select.PIPE_BUF
"""What a pipe that is writable takes without blocking."""


@attrs.define(eq=False)
class DescriptorReader(ByteReceiveStream):
    """Reads a file descriptor; its flags stay, since another process may share them."""

    descriptor: int

    async def receive(self, max_bytes: int = _PIECE) -> bytes:
        """Wait for bytes.

        Raises:
            anyio.EndOfStream: there are no more.
            anyio.BrokenResourceError: it cannot be read any more.
        """
        try:
            await _ready_to_read(self.descriptor)
            data = os.read(self.descriptor, max_bytes)
        except OSError as error:
            raise anyio.BrokenResourceError from error
        if not data:
            raise anyio.EndOfStream
        return data

    async def aclose(self) -> None:
        """Close nothing: who opened the descriptor does."""


@attrs.define(eq=False)
class DescriptorWriter(ByteSendStream):
    """Writes to a file descriptor, whose reader may be slow."""

    descriptor: int

    async def send(self, item: bytes) -> None:
        """Write bytes, all of them.

        Raises:
            anyio.BrokenResourceError: nobody reads them.
        """
        left = memoryview(item)
        # Half a line would make the next one unreadable.
        with anyio.CancelScope(shield=True):
            while left:
                try:
                    size = await _ready_to_write(self.descriptor)
                    left = left[os.write(self.descriptor, left[:size]) :]
                except OSError as error:
                    raise anyio.BrokenResourceError from error

    async def aclose(self) -> None:
        """Close nothing: who opened the descriptor does."""


@asynccontextmanager
async def standard_streams() -> AsyncIterator[
    tuple[DescriptorReader, DescriptorWriter]
]:
    """Give standard input and output to a protocol alone in the block.

    Whatever else is written to standard output then, by a module or by a child process, goes to standard error; and
    children read nothing of the protocol.
    """
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield DescriptorReader(incoming), DescriptorWriter(outgoing)
    finally:
        sys.stdout.flush()
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)
        for descriptor in (nothing, incoming, outgoing):
            os.close(descriptor)


async def _ready_to_read(descriptor: int) -> None:
    try:
        await anyio.wait_readable(descriptor)
    except PermissionError:
        # A regular file has no readiness, and never blocks for long.
        await anyio.lowlevel.checkpoint()


async def _ready_to_write(descriptor: int) -> int:
    """Wait until something can be written, and return how many bytes."""
    try:
        await anyio.wait_writable(descriptor)
    except PermissionError:
        await anyio.lowlevel.checkpoint()
        return _PIECE
    return _ATOMIC
