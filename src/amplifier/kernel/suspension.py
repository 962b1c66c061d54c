"""Suspending a turn: what waits for a person's answer holds nothing, and no call is left in the middle.

A session and all that come of it share one suspension. It takes place as soon as a question waits and no tool call
runs, but for those that delegate, whose children are suspended with them, and those that wait for a person and can
run again. Then the scope of the root's turn is
cancelled. Nothing is closed and nothing written: the journals have what is there, and the turns are continued from
them. A turn that was asked to stop, be it after its scope was cancelled, is not suspended but cancelled.
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

    from amplifier.kernel.cancellation import CancellationToken

__all__ = ["Suspension"]


@attrs.define(eq=False)
class _RunningCall:
    """A tool call that runs, and how many of its parts wait: for children's turns, or for a person."""

    waiting: int = 0


@attrs.define(eq=False, repr=False)
class Suspension:
    """Whether the turn that runs in a family of sessions is suspended.

    `scope` and `cancellation` are those of the root's turn while that runs.
    """

    scope: anyio.CancelScope | None = None
    cancellation: CancellationToken | None = None
    _has_left: bool = False
    _is_wanted: bool = False
    _waits: list[anyio.CancelScope] = attrs.field(factory=list)
    _running: dict[Hashable, _RunningCall] = attrs.field(factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether the turn is suspended, to be continued."""
        is_cancelled = self.cancellation is not None and self.cancellation.is_cancelled
        return self._has_left and not is_cancelled

    def begin(
        self,
        scope: anyio.CancelScope,
        cancellation: CancellationToken,
        *,
        is_root: bool,
    ) -> None:
        """Take the scope and the token of a turn that begins, if it is the root's."""
        if not is_root:
            return
        self.scope, self.cancellation = scope, cancellation
        self._has_left = self._is_wanted = False
        self._running.clear()

    def end(self, *, is_root: bool, is_over: bool) -> None:
        """Let go of a root's turn that ended; what is asked of it from here on comes too late.

        Args:
            is_root: whether it is the root's.
            is_over: whether it came to its end all the same.
        """
        if is_root:
            self._has_left = self.is_done and not is_over
            self.scope = self.cancellation = None

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

    async def wait(self, scope: anyio.CancelScope) -> NoReturn:
        """Wait until the turn is suspended, which cancels this.

        Args:
            scope: what else ends the wait; cancelled, it wants no suspension, though its task runs only later.
        """
        self._waits.append(scope)
        try:
            self._take_place()
            while True:
                await anyio.sleep_forever()
        finally:
            self._waits.remove(scope)

    def _take_place(self) -> None:
        is_asked = any(not scope.cancel_called for scope in self._waits)
        is_wanted = self._is_wanted or is_asked
        is_left = all(call.waiting for call in self._running.values())
        if is_wanted and is_left and self.scope is not None:
            self._has_left = True
            self.scope.cancel()
