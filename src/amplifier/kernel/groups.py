"""Exception groups of one: the user sees the error itself."""

from __future__ import annotations

__all__ = ["first_cause"]


def first_cause(failure: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error of a task group's failure; a group of several stays a group.

    A group inside is the error itself: somebody raised it.
    """
    return failure.exceptions[0] if len(failure.exceptions) == 1 else failure
