"""Exception groups of one: the user sees the error itself."""

from __future__ import annotations

__all__ = ["first_cause"]


def first_cause(failure: BaseException) -> BaseException:
    """Return the one error inside groups of one; a group of several stays a group."""
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    return failure
