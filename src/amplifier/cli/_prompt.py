"""The terminal's prompt, in a thread with an event loop of its own.

prompt_toolkit runs on asyncio alone. A loop of its own in a worker thread serves a program on either
backend; this is the one file of the command line that names asyncio.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  # prompt_toolkit knows no other loop
from contextlib import suppress
from functools import partial

import anyio
import attrs
from anyio import to_thread
from prompt_toolkit import PromptSession
from prompt_toolkit.history import InMemoryHistory

__all__ = ["LinePrompt"]


class LinePrompt:
    """Asks for lines; it remembers them for the arrow keys.

    Args:
        message: what stands before the cursor.
    """

    def __init__(self, message: str) -> None:
        self._message = message
        self._session: PromptSession[str] = PromptSession(history=InMemoryHistory())

    async def ask(self) -> str | None:
        """Return a typed line, an empty one for Ctrl-C, `None` at the end of the input.

        When it is cancelled the terminal is restored before it ends.
        """
        question = _Question(self._session, self._message)
        async with anyio.create_task_group() as group:
            group.start_soon(question.answer)
            try:
                await question.answered.wait()
            finally:
                question.withdraw()
        return question.line


@attrs.define(eq=False)
class _Question:
    """One line being asked for, between the program's task and the thread that reads the terminal."""

    session: PromptSession[str]
    message: str
    line: str | None = None
    answered: anyio.Event = attrs.field(factory=anyio.Event)
    _withdrawn: bool = False
    _asking: tuple[asyncio.AbstractEventLoop, asyncio.Task[str | None]] | None = None

    async def answer(self) -> None:
        """Read the line; this ends only when the thread has left the terminal."""
        with anyio.CancelScope(shield=True):
            self.line = await to_thread.run_sync(partial(asyncio.run, self._read()))
        self.answered.set()

    def withdraw(self) -> None:
        """Stop asking; does nothing once there is an answer."""
        self._withdrawn = True
        if self._asking is not None:
            loop, task = self._asking
            with suppress(RuntimeError):  # the loop is closed: there is an answer
                loop.call_soon_threadsafe(task.cancel)

    async def _read(self) -> str | None:
        """Read the line in the thread's loop. Whether this or `withdraw` comes first, one sees the other."""
        task = asyncio.current_task()
        if task is not None:
            self._asking = asyncio.get_running_loop(), task
        if self._withdrawn:
            return None
        try:
            return await self.session.prompt_async(self.message)
        except KeyboardInterrupt:
            return ""
        except (EOFError, asyncio.CancelledError):
            return None
