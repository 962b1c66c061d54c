"""Commands that nobody waits for: they run one after the other, beside the turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from logging import getLogger
from typing import Final, TypeAlias

import anyio
import attrs

from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import OwnerTaskError

__all__ = ["Observers"]

Work: TypeAlias = Callable[[], Awaitable[object]]
"""Something to be done; it fails for nobody."""

_WAITING: Final = 100
_DRAIN_SECONDS: Final = 3.0
_log: Final = getLogger(__name__)


@attrs.define(eq=False)
class Observers:
    """A queue of work, in a task of the session's own; without one, work is done where it is given.

    `dropped` is how much was not done, since more waited than may.
    """

    dropped: int = 0
    _waiting: list[Work] = attrs.field(factory=list)
    _news: anyio.Event | None = None
    _idle: anyio.Event = attrs.field(factory=anyio.Event)

    async def open(self, coordinator: Coordinator) -> None:
        """Open the queue, where the session has a task for it; it is worked off at the end, as far as seconds go."""
        # A session without a task of its own does the work where it is given.
        with suppress(OwnerTaskError):
            await coordinator.own(self._running(), name="hooks-shell")

    async def put(self, work: Work) -> None:
        """Hand work over."""
        if self._news is None:
            await work()
        elif len(self._waiting) >= _WAITING:
            self.dropped += 1
            if self.dropped == 1:
                _log.warning(
                    "more than %d observing hooks wait; further ones do not run",
                    _WAITING,
                )
        else:
            self._waiting.append(work)
            self._news.set()

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        self._news = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(self._work)
            try:
                yield
                # The last notifications still go out, and a hook that hangs does not
                # hold up the end.
                with anyio.move_on_after(_DRAIN_SECONDS):
                    while self._waiting or not self._idle.is_set():
                        await self._idle.wait()
                        await anyio.lowlevel.checkpoint()
            finally:
                group.cancel_scope.cancel()

    async def _work(self) -> None:
        while True:
            self._idle = anyio.Event()
            while self._waiting:
                # One after the other: notifications appear in the order of their
                # events.
                await self._waiting.pop(0)()
            self._idle.set()
            assert self._news is not None  # `_running` made it
            await self._news.wait()
            self._news = anyio.Event()
