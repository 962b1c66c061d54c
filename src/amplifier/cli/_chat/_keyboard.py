"""The terminal's prompt, in a thread with an event loop of its own; lines that stay scroll away above it.

prompt_toolkit runs on asyncio alone. A loop of its own in a worker thread serves a program on either backend; this is
the one file of the command line that names asyncio.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  # prompt_toolkit knows no other loop
import os
import select
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import attrs
import click
from anyio import from_thread, to_thread
from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from amplifier.app.sessions.choices import SessionChoices
from amplifier.cli._chat._bindings import make_bindings
from amplifier.cli._chat._keys import EndOfInput, EnteredLine, Key
from amplifier.cli._chat._picker import SessionPicker
from amplifier.cli._output import Output
from amplifier.cli._terminal import OutputClosedError

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

__all__ = ["Keyboard"]

T = TypeVar("T")

_MENU_ROWS = 4
_REDRAW_SECONDS = 0.01
_ESCAPE_SECONDS = 0.25
"""How long Esc waits for what would make it the beginning of another key, which a slow line may bring late."""
_SEQUENCE_SECONDS = 0.05
"""How long a whole key waits for another one that would make a shortcut of the two."""
_HOLD = "\x1b[?2026h"
_RELEASE = "\x1b[?2026l"
"""Between the two a terminal that knows them shows nothing, so that the prompt does not flicker; others ignore them."""
_STYLE = Style.from_dict(
    {"bottom-toolbar": "noreverse", "dim": "fg:ansibrightblack", "mode": "bold"}
)


@attrs.define(eq=False)
class _Reading:
    """The thread's loop with the task that reads, and the context in which it began."""

    loop: asyncio.AbstractEventLoop
    task: asyncio.Task[None]
    context: Context


class Keyboard:
    """A prompt that is there while turns run, too; Enter hands the text on and the prompt stays.

    `shown` is set once it takes keys, or the terminal is gone.

    Args:
        output: where lines that stay are written.
        is_working: whether a turn runs; Ctrl-C then leaves what is typed.
        has_colour: whether colours are shown.
    """

    has_live = True

    def __init__(
        self,
        output: Output,
        *,
        is_working: Callable[[], bool],
        has_colour: bool,
    ) -> None:
        self._output = output
        self._above = ""
        self._below = ""
        self._has_colour = has_colour
        self._take: Callable[[Key], object] = _ignore
        # Taken by three sides: the program's loop, the prompt's thread, and threads
        # that log.
        self._lock = threading.RLock()
        self._waiting: deque[str] = deque()
        self._is_printing = False
        self._is_broken = False
        self._reading: _Reading | None = None
        self._withdrawn = False
        self._is_over = False
        self._away = 0
        self._changed = anyio.Event()
        self._left = anyio.Event()
        self._left.set()
        self._text = ""
        self.shown = anyio.Event()
        self._session: PromptSession[str] = PromptSession(
            self._message,
            bottom_toolbar=self._toolbar,
            multiline=True,
            erase_when_done=True,
            complete_in_thread=True,
            complete_while_typing=True,
            reserve_space_for_menu=_MENU_ROWS,
            prompt_continuation="  ",
            key_bindings=make_bindings(self._hand_on, is_working),
            style=_STYLE,
            color_depth=None if has_colour else ColorDepth.DEPTH_1_BIT,
        )
        app = self._session.app
        app.after_render += self._note_shown
        app.min_redraw_interval = _REDRAW_SECONDS
        app.ttimeoutlen, app.timeoutlen = _ESCAPE_SECONDS, _SEQUENCE_SECONDS

    def remember(self, history: History) -> None:
        """Say what the arrow keys bring; before the prompt is shown."""
        self._session.history = history
        self._session.default_buffer.history = history

    def complete(self, completer: Completer) -> None:
        """Say what Tab brings, from now on."""
        self._session.completer = completer

    async def listen(self, take: Callable[[Key], object]) -> None:
        """Show the prompt and hand on what is typed, until cancelled; the terminal is restored then.

        It ends by itself when the terminal is gone.
        """
        self._take = take
        while not self._is_over:
            # Somebody else has the terminal; no second reader may take their keys.
            if self._away:
                await self._changed.wait()
                continue
            self._withdrawn = False
            self._left = anyio.Event()
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._read)
                    try:
                        await self._left.wait()
                    finally:
                        self._withdraw()
            finally:
                self._write_waiting()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Take the prompt away inside the block; what was typed so far is there again afterwards."""
        self._away += 1
        self._withdraw()
        try:
            await self._left.wait()
            yield
        finally:
            self._away -= 1
            if not self._away:
                self._changed.set()
                self._changed = anyio.Event()
                self._write_waiting()

    async def pick_session(self, choices: SessionChoices) -> str | None:
        """Let the person choose a session; the prompt makes way meanwhile."""
        app = self._session.app
        picker = SessionPicker(choices, app.input, app.output, self._has_colour)
        return await self._outside(picker.run, picker.close)

    async def edit(self) -> None:
        """Let the person edit what is typed in the program that `VISUAL` or `EDITOR` names."""
        edited = await self._outside(lambda: click.edit(self._text, extension=".md"))
        if edited is not None:
            self._text = edited.rstrip("\n")

    async def _outside(
        self, work: Callable[[], T], stop: Callable[[], None] | None = None
    ) -> T:
        """Run blocking work that has the terminal for itself; `stop` ends it when this is cancelled."""
        results: list[T] = []
        is_done = anyio.Event()

        async def run() -> None:
            # The terminal is the work's until it ends: nobody else may read it sooner.
            with anyio.CancelScope(shield=True):
                results.append(await to_thread.run_sync(work))
            is_done.set()

        async with self.away(), anyio.create_task_group() as group:
            group.start_soon(run)
            try:
                await is_done.wait()
            finally:
                if stop is not None and not is_done.is_set():
                    stop()
        return results[0]

    def write(self, text: str) -> None:
        """Show whole lines above the prompt, in the order of the calls; may be called from any thread.

        Raises:
            OutputClosedError: nobody reads any more.
        """
        with self._lock:
            if self._is_broken:
                raise OutputClosedError
            self._waiting.append(text)
            reading = self._reading
            if reading is not None:
                # One call for all lines that gather until the loop runs it: each costs
                # a redraw.
                if not self._is_printing:
                    self._is_printing = True
                    # the loop is closed: whoever waits for its end writes
                    with suppress(RuntimeError):
                        reading.loop.call_soon_threadsafe(
                            self._print, context=reading.context
                        )
                return
        if not self._away:
            self._write_waiting()

    def show(self, above: str, below: str) -> None:
        """Show what is incomplete over the prompt, and a line under it."""
        if (above, below) != (self._above, self._below):
            self._above, self._below = above, below
            self._session.app.invalidate()

    def _message(self) -> StyleAndTextTuples:
        above = self._above
        return [*([("", f"{above}\n")] if above else []), ("bold", "> ")]

    def _toolbar(self) -> StyleAndTextTuples:
        return [("class:dim", self._below)]

    def _note_shown(self, _: object) -> None:
        if not self.shown.is_set():
            from_thread.run_sync(self.shown.set)

    async def _read(self) -> None:
        """Read in the thread; this ends only when the thread has left the terminal."""
        try:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(partial(asyncio.run, self._prompt()))
        finally:
            self.shown.set()
            self._left.set()

    async def _prompt(self) -> None:
        """Show the prompt in the thread's loop. Whether this or `_withdraw` comes first, one sees the other."""
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            self._reading = _Reading(asyncio.get_running_loop(), task, copy_context())
            self._is_printing = False
        try:
            if not self._withdrawn:
                self._hand_on_early()
                await self._session.prompt_async(default=self._text)
        except asyncio.CancelledError:
            # The cancellation was `_withdraw`'s way to end the prompt, and not
            # asyncio.run's to end the thread.
            task.uncancel()
        except EOFError:  # the terminal is gone
            self._is_over = True
            self._hand_on(EndOfInput(is_gone=True))
        finally:
            # What was typed so far is the next prompt's beginning.
            self._text = self._session.default_buffer.text
            with self._lock:
                self._reading = None

    def _withdraw(self) -> None:
        self._withdrawn = True
        reading = self._reading
        if reading is not None:
            with suppress(RuntimeError):  # the loop is closed: it has left already
                reading.loop.call_soon_threadsafe(reading.task.cancel)

    def _hand_on(self, key: Key) -> None:
        """Hand a key on, from the thread that reads."""
        from_thread.run_sync(self._take, key)

    def _hand_on_early(self) -> None:
        """Hand on the whole lines that were typed while the terminal edited them itself."""
        handle = self._session.app.input.fileno()
        while os.isatty(handle) and select.select([handle], [], [], 0)[0]:
            data = os.read(handle, 65_536)
            if not data:
                raise EOFError
            self._hand_on(EnteredLine(data.decode(errors="replace").rstrip("\n")))

    def _print(self) -> None:
        """Write what waits above the prompt, in the loop of the prompt.

        The terminal keeps its mode: in another one it would take Enter for Ctrl-J, or show answers meant for us.
        """
        with self._lock:
            self._is_printing = False
            if not self._waiting:
                return
            app = self._session.app
            if not app.is_running or app.is_done:  # whoever waits for the end writes
                return
            self._send(_HOLD)
            app.renderer.erase()
            self._write_waiting()
        # The menu of completions needs to know how many rows are left below.
        app.renderer.request_absolute_cursor_position()
        app.renderer.render(app, app.layout)
        self._send(_RELEASE)

    def _send(self, sequence: str) -> None:
        output = self._session.app.output
        output.write_raw(sequence)
        output.flush()

    def _write_waiting(self) -> None:
        with self._lock:
            while self._waiting:
                text = self._waiting.popleft()
                try:
                    self._output.write(text)
                except OutputClosedError:
                    self._is_broken = True
                    self._waiting.clear()


def _ignore(_: Key) -> None:
    """Nobody listens yet."""
