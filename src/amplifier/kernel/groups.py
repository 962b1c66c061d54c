"""Exception groups of one: the user sees the error itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

__all__ = ["first_cause", "open_group"]


@asynccontextmanager
async def open_group() -> AsyncIterator[TaskGroup]:
    """Open a task group that raises the one error in it as itself; several stay a group."""
    try:
        async with anyio.create_task_group() as group:
            yield group
    except BaseExceptionGroup as failures:
        cause = first_cause(failures)
        raise cause from cause.__cause__


def first_cause(failure: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error of a task group's failure; a group of several stays a group.

    A group inside is the error itself: somebody raised it.
    """
    return failure.exceptions[0] if len(failure.exceptions) == 1 else failure
