"""The transport to a server that is a program: messages in lines on its standard input and output.

The program runs in a process tree of its own, which is dead when the transport is closed, whatever it started. Its
output is read in bounded memory, and what nobody asked for at a bounded rate.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from os import read
from typing import ClassVar, Final

import anyio
import attrs
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from amplifier_kit.processes import Command, ProcessTree
from amplifier_kit.rpc.lines import LineSplitter, RequestId, TooLong, answered_id
from amplifier_module_tool_mcp.results import NoAnswer
from amplifier_module_tool_mcp.wire import (
    Incoming,
    MessageTooLargeError,
    Outgoing,
    Streams,
    UnencodableError,
    UnexpectedMessages,
    pass_on,
    read_message,
    unanswered,
    write_message,
)

__all__ = ["StdioLink"]

_CHUNK: Final = 1 << 16
_LEAVING_SECONDS: Final = 0.5
_ENDING_SECONDS: Final = 2.0
_WRITE_SECONDS: Final = 10.0


@attrs.define(eq=False, kw_only=True)
class StdioLink:
    """One connection to a program.

    Args:
        command: what is run, with `interactive`.
        max_bytes: the longest message.
        hear: takes what the program says beside its messages: a level, `stderr` or `stdout`, and some bytes.
    """

    command: Command
    max_bytes: int
    hear: Callable[[str, bytes], None]
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    problem: str | None = None
    needs_login: ClassVar[bool] = False
    _is_closing: bool = False
    _waiting: set[RequestId] = attrs.field(factory=set)
    _unasked: UnexpectedMessages = attrs.field(factory=UnexpectedMessages)

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[Streams, None]:
        """Start the program for the protocol's client, once; nothing of it is left when the block is."""
        # A tree, since servers are often started by scripts, which would outlive their
        # end.
        tree = ProcessTree.start(self.command)
        try:
            incoming, received = anyio.create_memory_object_stream[
                SessionMessage | Exception
            ](0)
            outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
            with incoming, received, outgoing, to_send:
                async with anyio.create_task_group() as pumps:
                    pumps.start_soon(self._read, tree, incoming)
                    pumps.start_soon(self._write, tree, to_send, incoming)
                    pumps.start_soon(
                        tree.pump, tree.stderr, lambda data: self.hear("stderr", data)
                    )
                    try:
                        yield received, outgoing
                    finally:
                        # the program gets its time to leave also where the session is
                        # cancelled
                        with anyio.CancelScope(shield=True):
                            await self._end(tree)
                        pumps.cancel_scope.cancel()
        finally:
            await tree.aclose()

    async def _end(self, tree: ProcessTree) -> None:
        """Let the program go by itself when its input ends, and end it otherwise."""
        # set first: the end of its output is no failure from here on
        self._is_closing = True
        # The protocol's way to say that the session is over.
        tree.close_input()
        with anyio.move_on_after(_LEAVING_SECONDS):
            await tree.wait()
            return
        tree.stop()
        with anyio.move_on_after(_ENDING_SECONDS):
            await tree.wait()

    async def _read(self, tree: ProcessTree, incoming: Incoming) -> None:
        lines = LineSplitter(self.max_bytes)
        assert tree.stdout is not None
        try:
            while True:
                await anyio.wait_readable(tree.stdout)
                data = read(tree.stdout, _CHUNK)
                if not data:
                    break
                for line in lines.feed(data):
                    await self._receive(line, incoming)
            self._over("it closed its output", tree)
        finally:
            incoming.close()

    def _over(self, problem: str, tree: ProcessTree) -> None:
        """Note why the connection ended, the first time."""
        if self.problem is None and not self._is_closing:
            ending = tree.ending
            if ending is None:
                self.problem = problem
            else:
                self.problem = ending.error or f"it ended with code {ending.code}"
        self.ended.set()

    async def _receive(self, line: bytes | TooLong, incoming: Incoming) -> None:
        if isinstance(line, TooLong):
            problem = f"it sent a message of {line.size} bytes, more than the {self.max_bytes} of max_message_bytes"
            message = self._refused(line, f"{problem}; ask for less")
        else:
            message = self._parsed(line)
        # only the rest is drained by then
        if message is not None and not self.ended.is_set():
            await pass_on(message, incoming)

    def _parsed(self, line: bytes) -> JSONRPCMessage | None:
        try:
            message = read_message(line)
        except MessageTooLargeError as error:
            return self._refused(TooLong.of(line), str(error))
        except ValueError:
            # Servers print there by mistake; the person reads it in the log.
            self.hear("stdout", line + b"\n")
            return None
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._waiting.discard(message.id)
        # answers are always taken: each was asked for
        elif self._unasked.is_too_much():
            return None
        return message

    def _refused(self, line: TooLong, problem: str) -> JSONRPCMessage | None:
        """Answer a request whose answer is too large; without knowing which it is, the connection cannot go on."""
        answered = answered_id(line)
        # the id may be beyond what was read; a single request needs none
        if answered is None and len(self._waiting) == 1:
            (answered,) = self._waiting
        if answered is None:
            self.problem = problem
            self.ended.set()
            return None
        self._waiting.discard(answered)
        return unanswered(answered, problem, NoAnswer(may_have_run=True))

    async def _write(
        self, tree: ProcessTree, to_send: Outgoing, incoming: Incoming
    ) -> None:
        async for item in to_send:
            message = item.message
            try:
                data = write_message(message) + b"\n"
            except UnencodableError as error:
                if isinstance(message, JSONRPCRequest):
                    await pass_on(
                        unanswered(
                            message.id, str(error), NoAnswer(may_have_run=False)
                        ),
                        incoming,
                    )
                continue
            if isinstance(message, JSONRPCRequest):
                # before it is sent: the answer may come while the rest is written
                self._waiting.add(message.id)
            elif (
                isinstance(message, JSONRPCNotification)
                and message.method == "notifications/cancelled"
            ):
                self._waiting.discard((message.params or {}).get("requestId", 0))
            is_sent = False
            with (
                suppress(OSError, anyio.ClosedResourceError),
                # A server that does not read would hold up every later request.
                anyio.move_on_after(_WRITE_SECONDS),
            ):
                await tree.send(data)
                is_sent = True
            if not is_sent:
                self._over("it does not read what it is sent", tree)
                return
