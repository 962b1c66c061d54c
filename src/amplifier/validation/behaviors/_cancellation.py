"""Cancelling what a module does, and waiting for its end with a limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Literal, TypeAlias

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors import _limits
from amplifier.validation.behaviors.behavior import require, skip_unless

_Work: TypeAlias = Callable[[], Coroutine[object, object, object]]


@contextmanager
def ends_in_time(what: str, since: str) -> Iterator[anyio.CancelScope]:
    """Give a block `_limits.CANCELLATION` seconds; what it yields may be given another deadline.

    Args:
        what: whose block it is, such as `the turn`.
        since: what happened when the waiting began, such as `it was cancelled`.

    Raises:
        BehaviorFailed: it has not ended by then.
    """
    with anyio.move_on_after(_limits.CANCELLATION) as scope:
        yield scope
    require(
        not scope.cancel_called,
        f"{what} continued for {_limits.CANCELLATION:g} s after {since}",
    )


async def cancel_when(
    ready: Callable[[], Awaitable[object]], work: _Work, what: str
) -> bool:
    """Begin something, cancel it when it is ready, and require its end; return whether the cancellation reached it."""
    state: Literal["new", "waiting", "ended", "cancelled"] = "new"

    async def run() -> None:
        nonlocal state
        state = "waiting"
        try:
            await work()
        except anyio.get_cancelled_exc_class():
            state = "cancelled"
            raise
        state = "ended"

    with ends_in_time(what, "it was cancelled") as scope:
        # What is slow to begin is not slow to end: time counts from the cancellation.
        scope.deadline = inf
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await ready()
            scope.deadline = anyio.current_time() + _limits.CANCELLATION
            # one that swallows the cancellation was reached by it nevertheless
            was_waiting = state == "waiting"
            group.cancel_scope.cancel()
    return was_waiting or state == "cancelled"


async def cancel_early(what: str, *attempts: _Work) -> None:
    """Begin things one after the other, each cancelled one step of the event loop later.

    What never waits cannot be cancelled, so nothing can be said of it.
    """

    async def take_steps(count: int) -> None:
        # steps and no seconds: each is another point at which a cancellation may arrive
        for _ in range(count):
            await anyio.lowlevel.checkpoint()

    reached = [
        await cancel_when(partial(take_steps, count), work, what)
        for count, work in enumerate(attempts)
    ]
    skip_unless(any(reached), "it never waits, so that nothing can cancel it")
