"""The screen: a thread that shows what it is handed, so that a slow terminal never holds the event loop."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final, TypeAlias

import attrs

from amplifier_kit.terminal import TextStream, visible
from amplifier_module_hooks_streaming_ui._pen import Pen
from amplifier_sdk.threads import run_blocking

__all__ = ["Paint", "StreamScreen"]

Paint: TypeAlias = Callable[[str], str]
"""Makes what is written of a text; called in the screen's thread, one at a time."""

_FRAME: Final = 0.015
"""Seconds for which pieces are gathered: more often than that nobody sees a change."""
_FLUSH_SECONDS: Final = 5.0
_CHUNK: Final = 8192


@attrs.define(eq=False)
class _Piece:
    """Texts that are painted as one."""

    paint: Paint
    texts: list[str]


@attrs.define(eq=False)
class StreamScreen:
    """One stream with a thread that writes to it, shared by the sessions that show something there.

    The thread begins with the first piece. When more than `max_waiting` characters wait for it, `wait_for_room` waits
    for as long as the stream takes anything; what comes when it has taken nothing for `write_timeout` seconds is
    counted and left out.
    """

    stream: TextStream
    pen: Pen
    max_waiting: int
    write_timeout: float
    sessions: int = 0
    _pieces: deque[_Piece] = attrs.field(factory=deque)
    _waiting: int = 0
    _left_out: int = 0
    _taken: int = 0
    _is_stuck: bool = False
    _is_idle: bool = True
    _is_gone: bool = False
    _moved: threading.Condition = attrs.field(factory=threading.Condition)
    _urgent: threading.Event = attrs.field(factory=threading.Event)
    _is_ending: bool = False
    _thread: threading.Thread | None = None

    _OPEN: ClassVar[dict[int, StreamScreen]] = {}

    @classmethod
    def of(
        cls, stream: TextStream, pen: Pen, *, max_waiting: int, write_timeout: float
    ) -> StreamScreen:
        """Return the screen of a stream, a new one where no session shows anything there; call `leave` in the end."""
        screen = cls._OPEN.get(id(stream))
        if screen is None:
            screen = cls._OPEN[id(stream)] = cls(
                stream, pen, max_waiting, write_timeout
            )
        screen.sessions += 1
        return screen

    @property
    def is_full(self) -> bool:
        """Whether as much waits as may."""
        return self._waiting > self.max_waiting

    def put(self, paint: Paint, text: str, *, joins: bool = False) -> None:
        """Hand over a piece; never waits. One that joins is painted together with one of the same painter before."""
        with self._moved:
            if self._is_gone or (self._is_stuck and self._waiting > self.max_waiting):
                self._left_out += len(text)
                return
            last = None
            if self._pieces:
                last = self._pieces[-1]
            if joins and last is not None and last.paint is paint:
                last.texts.append(text)
            else:
                self._pieces.append(_Piece(paint, [text]))
            self._waiting += len(text)
            if not self._is_idle:
                return
            self._is_idle = False
            self._moved.notify_all()
        if self._thread is None:
            self._start()

    async def wait_for_room(self) -> None:
        """Wait until half of what may wait does, or nothing was taken for `write_timeout` seconds."""
        if not self._is_stuck:
            await run_blocking(self._has_room, name="terminal")

    async def flush(self, timeout: float = _FLUSH_SECONDS) -> None:
        """Wait until everything is shown, at most so many seconds."""
        if self._thread is not None and not self._is_idle and not self._is_stuck:
            await run_blocking(lambda: self._drain(timeout), name="terminal")

    async def leave(self) -> None:
        """Show what is left; the last session's leaving ends the thread."""
        await self.flush()
        self.sessions -= 1
        if self.sessions == 0:
            self._OPEN.pop(id(self.stream), None)
            await run_blocking(self._end, name="terminal")

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="terminal", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def _has_room(self) -> None:
        with self._moved:
            while self._waiting > self.max_waiting // 2:
                before = self._taken
                if not self._moved.wait(self.write_timeout) and self._taken == before:
                    self._is_stuck = True
                    return

    def _drain(self, timeout: float) -> None:
        self._urgent.set()
        with self._moved:
            self._moved.wait_for(lambda: self._is_idle, timeout)
        self._urgent.clear()

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._is_ending = True
        self._urgent.set()
        with self._moved:
            self._moved.notify_all()
        thread.join(timeout=self.write_timeout)
        atexit.unregister(self._end)

    def _work(self) -> None:
        """Take what waits and write it until the end."""
        while True:
            with self._moved:
                self._is_idle = not self._pieces
                self._moved.notify_all()
                self._moved.wait_for(lambda: self._pieces or self._is_ending)
                if not self._pieces:
                    return
            self._urgent.wait(_FRAME)
            self._show()

    def _show(self) -> None:
        while True:
            with self._moved:
                if not self._pieces:
                    break
                piece = self._pieces.popleft()
            text = "".join(piece.texts)
            self._write(_painted(piece.paint, text))
            with self._moved:
                self._waiting -= len(text)
                self._is_stuck = False
                left_out, self._left_out = self._left_out, 0
                self._moved.notify_all()
            if left_out and not self._is_gone:
                self._write(
                    self.pen.line(
                        f"[{left_out:,} characters are left out: the terminal took none]"
                    )
                )

    def _write(self, text: str) -> None:
        if self._is_gone or not text:
            return
        try:
            for start in range(0, len(text), _CHUNK):
                self._write_encoded(text[start : start + _CHUNK])
                with self._moved:
                    self._taken += 1
                    self._moved.notify_all()
            self.stream.flush()
        except (OSError, ValueError):
            # nobody reads any more, or the stream is closed: the turn goes on
            self._is_gone = True

    def _write_encoded(self, text: str) -> None:
        try:
            self.stream.write(text)
        except UnicodeEncodeError as error:
            self.stream.write(
                text.encode(error.encoding, "backslashreplace").decode(error.encoding)
            )


def _painted(paint: Paint, text: str) -> str:
    try:
        return paint(text)
    except Exception as error:
        # foreign redactors: what they fail on must not end the thread
        return visible(f"(not shown: {type(error).__name__})\n")
