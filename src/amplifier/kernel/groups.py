"""Exception groups of one: the user sees the error itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.abc import TaskGroup

__all__ = ["only_error", "open_group", "ungrouped"]


@asynccontextmanager
async def open_group() -> AsyncIterator[TaskGroup]:
    """Open a task group that raises the one error in it as itself; several stay a group."""
    with ungrouped():
        async with anyio.create_task_group() as group:
            yield group


@contextmanager
def ungrouped() -> Iterator[None]:
    """Raise the one error of the block's task group as itself, with what it came of; several stay a group.

    A group inside is the error itself: somebody raised it.
    """
    cause: BaseException | None = None
    context: BaseException | None = None
    try:
        yield
    except BaseExceptionGroup as failures:
        cause = failures
        if len(failures.exceptions) == 1:
            cause = failures.exceptions[0]
        context = cause.__context__
        raise cause  # noqa: B904  # what it came of is its own
    finally:
        if cause is not None:
            cause.__context__ = context  # which Python has just replaced by the group


def only_error(error: BaseException) -> BaseException:
    """Return the one error in a task group's failure, or in several around each other; any other error itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
