"""Waiting for something to become true, with a limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable

import anyio

__all__ = ["wait_for"]


async def wait_for(
    condition: Awaitable[object] | Callable[[], object], timeout: float = 1.0
) -> bool:
    """Wait until a condition holds; return whether it did within `timeout` seconds.

    An awaitable, such as `event.wait()`, is awaited: nothing polls. A function is called again and again, at
    growing intervals, until what it returns is true; an async one may itself wait, and is called once if it
    returns `None`.

    Args:
        condition: what to wait for.
        timeout: seconds.
    """
    with anyio.move_on_after(timeout):
        if not callable(condition):
            await condition
            return True
        started = anyio.current_time()
        while not await _holds(condition):
            waited = anyio.current_time() - started
            await anyio.sleep(0.001 + waited / 8)  # long waits are checked less often
        return True
    return False


async def _holds(condition: Callable[[], object]) -> bool:
    answer = condition()
    if not isawaitable(answer):
        return bool(answer)
    answer = await answer
    # an async function without a result, such as `event.wait`, has waited itself
    return answer is None or bool(answer)
