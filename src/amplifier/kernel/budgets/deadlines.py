"""Deadlines that stand still: waiting for a person costs nobody's time, and a child's work not its caller's.

A step that has a deadline keeps its scope on its span, so whoever waits finds the deadlines of all the steps
that it is part of. Several may hold one deadline; it runs again when the last of them lets go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Final

import anyio

from amplifier.kernel.spans import Span, current_span

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["call_deadlines_held", "deadlines_held", "is_held"]


@contextmanager
def deadlines_held() -> Iterator[None]:
    """Stop the deadlines of every step that the running code is part of, up to the outermost turn."""
    with _held(_steps(current_span.get())):
        yield


@contextmanager
def call_deadlines_held() -> Iterator[None]:
    """Stop the deadlines of the calls that the running code is part of, but not that of its turn."""
    with _held(span for span in _steps(current_span.get()) if not span.is_turn):
        yield


def _steps(span: Span | None) -> Iterator[Span]:
    while span is not None:
        yield span
        span = span.parent


@contextmanager
def _held(spans: Iterable[Span]) -> Iterator[None]:
    held = [span for span in spans if span.scope is not None]
    for span in held:
        _hold(span)
    try:
        yield
    finally:
        for span in held:
            _release(span)


def is_held(span: Span) -> bool:
    """Whether the deadline of a step stands still."""
    return span in _HOLDS


def _hold(span: Span) -> None:
    assert span.scope is not None
    # seconds and not a time: the clock runs on while the deadline stands still
    left = span.scope.deadline - anyio.current_time()
    # the step has not waited yet, and all of its time is left
    if left == inf and span.limit is not None:
        left = span.limit
    holders, left = _HOLDS.get(span, (0, left))
    span.scope.deadline = inf
    _HOLDS[span] = holders + 1, left


def _release(span: Span) -> None:
    assert span.scope is not None
    holders, left = _HOLDS.pop(span)
    if holders > 1:
        _HOLDS[span] = holders - 1, left
    else:
        span.scope.deadline = anyio.current_time() + left


_HOLDS: Final[dict[Span, tuple[int, float]]] = {}
"""The steps whose deadlines stand still: how many hold each, and the seconds that it has left."""
