"""The deadline of a step: set when the step first waits, for no deadline ends what never does.

Setting a deadline costs as much as the scope that has it, and asking which backend runs as much as entering it. So a
step's scope is of the class that the turn's was, and a call that answers at once never pays for a timer.
"""

from __future__ import annotations

from collections.abc import Generator
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, TypeVar

import anyio

from amplifier.kernel.budgets.deadlines import is_held

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from amplifier.kernel.spans import Span

__all__ = ["limited", "scope_class"]

T = TypeVar("T")


def scope_class(scope: anyio.CancelScope) -> type[anyio.CancelScope]:
    """Return what makes scopes of the backend that made this one."""
    return type(scope)


@coroutine
def limited(
    step: Awaitable[T],
    scope: anyio.CancelScope,
    seconds: float,
    span: Span | None = None,
) -> Generator[object, object, T]:
    """Await a step in its scope, which gets its deadline when the step waits for the first time.

    Args:
        step: what is awaited.
        scope: the scope that is entered around it.
        seconds: how long the step may take from its beginning on.
        span: the span whose scope it is; while its deadline is held, none is set.
    """
    started = perf_counter()
    steps = step.__await__()
    try:
        wanted = next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what the step returned
    if span is None or not is_held(span):
        scope.deadline = anyio.current_time() + seconds - (perf_counter() - started)
    while True:
        try:
            try:
                sent = yield wanted
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # it is the step's, which may handle it
                wanted = steps.throw(error)
            else:
                wanted = steps.send(sent)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what the step returned
