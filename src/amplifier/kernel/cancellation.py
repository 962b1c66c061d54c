"""The cancellation token: how far a turn is asked to stop.

Graceful: running steps finish, no new one starts. Immediate: the scope of the turn is cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from inspect import isawaitable

import anyio

from amplifier.kernel.reports import name_of, report

__all__ = ["CancellationState", "CancellationToken"]


class CancellationState(StrEnum):
    """How far a turn is asked to stop; each state reads as its bare word."""

    NONE = "none"
    GRACEFUL = "graceful"
    IMMEDIATE = "immediate"


class CancellationToken:
    """One session's token; a request reaches the tokens of its children as well.

    `notify`, where it is set, is called as soon as the state is another one.
    """

    state: CancellationState = CancellationState.NONE

    def __init__(self) -> None:
        self.notify: Callable[[], None] | None = None
        self._announced: CancellationState = CancellationState.NONE
        self._scope: anyio.CancelScope | None = None
        self._waits: list[anyio.CancelScope] = []
        self._children: list[CancellationToken] = []
        self._callbacks: list[Callable[[], Awaitable[object] | object]] = []
        self._running: dict[str, str] = {}

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn was asked to stop at all."""
        return self.state is not CancellationState.NONE

    @property
    def is_graceful(self) -> bool:
        """Whether running steps may finish and no new one may start."""
        return self.state is CancellationState.GRACEFUL

    @property
    def is_immediate(self) -> bool:
        """Whether running steps are cancelled."""
        return self.state is CancellationState.IMMEDIATE

    @property
    def running_tools(self) -> set[str]:
        """The ids of the tool calls that run."""
        return set(self._running)

    @property
    def running_tool_names(self) -> list[str]:
        """The names of the tools that run, in the order in which they started."""
        return list(self._running.values())

    def request_graceful(self) -> bool:
        """Ask the turn to stop before its next step; return whether that was news."""
        # even if this is no news: a child may have begun its turn since
        for child in self._children:
            child.request_graceful()
        if self.is_cancelled:
            return False
        self._reach(CancellationState.GRACEFUL)
        return True

    request_cancellation = request_graceful

    def request_immediate(self) -> bool:
        """Cancel the running step now; return whether that was news."""
        for child in self._children:
            child.request_immediate()
        if self.is_immediate:
            return False
        self._reach(CancellationState.IMMEDIATE)
        if self._scope is not None:
            self._scope.cancel()
        return True

    def reset(self) -> None:
        """Forget the request, at the start of a new turn."""
        # a turn that died may have left calls that nobody ended
        self.state = self._announced = CancellationState.NONE
        self._running.clear()

    def take_news(self) -> bool:
        """Return whether the present state is a request that was not announced; asked once, it is news no more."""
        # both at once: two tasks that announce one request must not both find it new
        news, self._announced = self.state is not self._announced, self.state
        return news

    def attach(self, scope: anyio.CancelScope | None) -> None:
        """Name the scope that an immediate request cancels, also one made before, or none between turns."""
        self._scope = scope
        if scope is not None and self.is_immediate:
            scope.cancel()

    @contextmanager
    def ending(self, scope: anyio.CancelScope) -> Iterator[None]:
        """Cancel a scope as soon as the turn is asked to stop, gently or not: a wait that only a new step needs."""
        self._waits.append(scope)
        try:
            if self.is_cancelled:
                scope.cancel()
            yield
        finally:
            self._waits.remove(scope)

    def _reach(self, state: CancellationState) -> None:
        self.state = state
        if self.notify is not None:
            self.notify()
        for scope in self._waits:
            scope.cancel()

    def register_tool_start(self, call_id: str, name: str) -> None:
        """Note that a tool call runs."""
        self._running[call_id] = name

    def register_tool_complete(self, call_id: str) -> None:
        """Note that a tool call ended."""
        self._running.pop(call_id, None)

    def register_child(self, child: CancellationToken) -> None:
        """Let requests reach a child session; it inherits the present state at once."""
        self._children.append(child)
        child.inherit(self)

    def inherit(self, parent: CancellationToken) -> None:
        """Take over what the parent was asked."""
        if parent.is_immediate:
            self.request_immediate()
        elif parent.is_graceful:
            self.request_graceful()

    def unregister_child(self, child: CancellationToken) -> None:
        """Let requests reach a child session no more."""
        if child in self._children:
            self._children.remove(child)

    def on_cancel(
        self, callback: Callable[[], Awaitable[object] | object]
    ) -> Callable[[], None]:
        """Call `callback`, sync or async, when the turn is asked to stop; return what takes that back."""
        self._callbacks.append(callback)
        return partial(self._forget, callback)

    def _forget(self, callback: Callable[[], Awaitable[object] | object]) -> None:
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    async def trigger_callbacks(self) -> None:
        """Call the callbacks; one that fails is reported and does not stop the rest."""
        # a copy, since a callback may take itself back
        for callback in list(self._callbacks):
            try:
                answer = callback()
                if isawaitable(answer):
                    await answer
            except Exception as error:  # foreign code
                report(
                    "cancellation.callback_failed", error, callback=name_of(callback)
                )
