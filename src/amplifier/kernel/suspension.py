"""Suspending a turn: what waits for a person's answer holds nothing, and no call is left in the middle.

A session and all that come of it share one suspension. It takes place as soon as a question waits and no tool call
runs, but for those that delegate, whose children are suspended with them, and those that wait for a person and can
run again. Then the scope of the root's turn is
cancelled. Nothing is closed and nothing written: the journals have what is there, and the turns are continued from
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import anyio
import attrs

from amplifier.kernel.spans import Span, current_span

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Suspension"]


@attrs.define(eq=False)
class _RunningCall:
    """A tool call that runs, and how many of its parts wait: for children's turns, or for a person."""

    waiting: int = 0


@attrs.define(eq=False, repr=False)
class Suspension:
    """Whether the turn that runs in a family of sessions is suspended: `is_done` once it is.

    `scope` is the one of the root's turn while that runs.
    """

    scope: anyio.CancelScope | None = None
    is_done: bool = False
    _is_wanted: bool = False
    _waiting: int = 0
    _running: dict[Hashable, _RunningCall] = attrs.field(factory=dict)

    def begin(self, scope: anyio.CancelScope, *, is_root: bool) -> None:
        """Take the scope of a turn that begins, if it is the root's."""
        if not is_root:
            return
        self.scope = scope
        self.is_done = self._is_wanted = False
        self._running.clear()

    def end(self, *, is_root: bool) -> None:
        """Forget the scope of a root's turn that ended."""
        if is_root:
            self.scope = None

    def request(self, *, immediate: bool) -> None:
        """Suspend the turn without a question, as soon as no call runs, or at once."""
        self._is_wanted = True
        if immediate:
            self._running.clear()
        self._take_place()

    @contextmanager
    def call(self, span: Span) -> Iterator[None]:
        """Let no suspension take place while the tool call of a span runs."""
        self._running[span] = _RunningCall()
        try:
            yield
        finally:
            self._running.pop(span, None)
            self._take_place()

    @contextmanager
    def call_waiting(self) -> Iterator[None]:
        """Count the call around this as one that waits: for a child's turn, or for a person."""
        span = current_span.get()
        while span is not None and span not in self._running:
            span = span.parent
        if span is None:
            yield
            return
        call = self._running[span]
        call.waiting += 1
        try:
            yield
        finally:
            call.waiting -= 1

    async def wait(self) -> NoReturn:
        """Wait until the turn is suspended, which cancels this."""
        self._waiting += 1
        try:
            self._take_place()
            while True:
                await anyio.sleep_forever()
        finally:
            self._waiting -= 1

    def _take_place(self) -> None:
        is_wanted = self._is_wanted or self._waiting
        is_left = all(call.waiting for call in self._running.values())
        if is_wanted and is_left and self.scope is not None:
            self.is_done = True
            self.scope.cancel()
