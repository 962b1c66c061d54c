"""What is typed in a chat, from the moment its prompt is shown: whoever hears it may come later."""

from __future__ import annotations

import math
from collections.abc import Callable

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from amplifier.cli._chat._keys import Board, Interrupt, Key

__all__ = ["TypedKeys"]


@attrs.define(eq=False)
class TypedKeys:
    """The keys of a board in their order; `received` has those that nobody has heard yet, `heard` is set by who hears.

    Args:
        board: where they are typed.
        interrupted: what Ctrl-C does while nobody hears.
    """

    board: Board
    interrupted: Callable[[], object]
    heard: anyio.Event = attrs.field(factory=anyio.Event)
    received: MemoryObjectReceiveStream[Key] = attrs.field(init=False)
    _send: MemoryObjectSendStream[Key] = attrs.field(init=False)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    _ended: anyio.Event = attrs.field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        # Unbounded: the thread of the keyboard hands keys on and must never wait for the turn.
        self._send, self.received = anyio.create_memory_object_stream[Key](math.inf)

    async def listen(self) -> None:
        """Show the prompt and receive what is typed, until `end`; whole lines not before somebody hears."""
        try:
            with self._send, self.received, self._scope:
                if not self.board.has_live:
                    # the terminal has what is typed, and shows it behind the prompt
                    await self.heard.wait()
                await self.board.listen(self._take)
                await anyio.sleep_forever()  # what is typed is heard until its end
        finally:
            self._ended.set()

    async def end(self) -> None:
        """Take the prompt away, and wait until the terminal is as it was."""
        self._scope.cancel()
        await self._ended.wait()

    def _take(self, key: Key) -> None:
        if isinstance(key, Interrupt) and not self.heard.is_set():
            self.interrupted()
        else:
            self._send.send_nowait(key)
