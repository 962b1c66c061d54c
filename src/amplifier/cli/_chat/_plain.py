"""The keyboard of a terminal that can only print lines: whole lines, edited by the terminal itself."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from amplifier.cli._approval import read_line
from amplifier.cli._chat._keys import EndOfInput, EnteredLine, Key
from amplifier.cli._output import Output

__all__ = ["PlainKeyboard"]

_PROMPT = "> "


class PlainKeyboard:
    """Reads lines from standard input; between turns a prompt stands before them.

    Args:
        output: where lines are written.
        is_working: whether a turn runs.
    """

    has_live = False

    def __init__(self, output: Output, *, is_working: Callable[[], bool]) -> None:
        self._output = output
        self._is_working = is_working
        self._lock = threading.Lock()
        self._is_prompting = False
        self._asking = anyio.Lock()
        self._scope: anyio.CancelScope | None = None

    async def listen(self, take: Callable[[Key], object]) -> None:
        """Hand on lines until cancelled, or their end."""
        while True:
            async with self._asking:
                pass
            with anyio.CancelScope() as scope:
                self._scope = scope
                line = await read_line(sys.stdin.fileno())
                self._is_prompting = False
                if line is None:
                    take(EndOfInput(is_gone=True))
                    return
                take(EnteredLine(line.rstrip("\n")))

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Read nothing inside the block."""
        async with self._asking:
            if self._scope is not None:
                self._scope.cancel()
            yield

    def write(self, text: str) -> None:
        """Write whole lines; a prompt that stands there is begun anew behind them.

        Raises:
            OutputClosedError: nobody reads any more.
        """
        with self._lock:
            self._output.write(f"\n{text}" if self._is_prompting else text)
            self._is_prompting = False

    def show(self, above: str, below: str) -> None:  # noqa: ARG002  # such a terminal shows whole lines alone
        """Show the prompt where the next line is one."""
        with self._lock:
            if not self._is_working() and not self._is_prompting:
                self._is_prompting = True
                self._output.write(_PROMPT)
