"""The deadline of a step is set when the step first waits."""

from __future__ import annotations

from collections.abc import Generator
from math import inf
from types import coroutine

import anyio
import pytest

from amplifier.kernel.budgets.deadlines import deadlines_held
from amplifier.kernel.budgets.steps import limited, scope_class
from amplifier.kernel.spans import Span, current_span


async def answer() -> int:
    return 1


@coroutine
def wait(log: list[str]) -> Generator[str, object, object]:
    """Wait once, for whatever drives it."""
    try:
        return (yield "wanted")
    finally:
        log.append("left")


async def test_a_step_that_answers_at_once_has_no_deadline() -> None:
    with anyio.CancelScope() as scope:
        assert await limited(answer(), scope, 5) == 1

    assert scope.deadline == inf


async def test_a_step_that_waits_has_its_deadline_from_its_beginning_on() -> None:
    deadlines: list[float] = []

    async def step() -> str:
        await anyio.lowlevel.checkpoint()
        deadlines.append(scope.deadline)
        return "end"

    with anyio.CancelScope() as scope:
        begun = anyio.current_time()
        assert await limited(step(), scope, 5) == "end"

    assert begun + 4.5 < deadlines[0] <= anyio.current_time() + 5


async def test_a_step_that_takes_longer_is_cancelled_and_may_clean_up() -> None:
    cleaned: list[str] = []

    async def step() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                cleaned.append("up")

    with anyio.fail_after(5), anyio.CancelScope() as scope:
        await limited(step(), scope, 0.01)

    assert scope.cancelled_caught
    assert cleaned == ["up"]


async def test_what_a_wait_raises_is_the_step_s() -> None:
    async def step() -> str:
        with pytest.raises(TimeoutError), anyio.fail_after(0):
            await anyio.sleep_forever()
        return "went on"

    with anyio.CancelScope() as scope:
        assert await limited(step(), scope, 5) == "went on"


async def test_while_a_deadline_is_held_none_is_set() -> None:
    span = Span("s")
    left: list[float] = []

    async def step() -> None:
        with deadlines_held():
            await anyio.lowlevel.checkpoint()
            left.append(scope.deadline)
        left.append(scope.deadline - anyio.current_time())

    token = current_span.set(span)
    with anyio.CancelScope() as scope:
        span.scope, span.limit = scope, 5
        await limited(step(), scope, 5, span)
    current_span.reset(token)

    assert left[0] == inf
    assert left[1] == pytest.approx(5, abs=0.5)


async def test_scopes_of_a_step_are_of_the_backend_s_own_class() -> None:
    with anyio.CancelScope() as outer:
        make = scope_class(outer)
        with make() as inner:
            inner.cancel()
            await anyio.sleep_forever()

    assert inner.cancelled_caught
    assert not outer.cancelled_caught


async def test_a_step_that_is_closed_while_it_waits_is_left() -> None:
    log: list[str] = []

    async def step() -> object:
        return await wait(log)

    driven = limited(step(), anyio.CancelScope(), 5)
    assert next(driven) == "wanted"
    driven.close()

    assert log == ["left"]


async def test_an_error_that_ends_a_wait_may_end_the_step() -> None:
    log: list[str] = []

    async def step() -> object:
        with pytest.raises(LookupError):
            await wait(log)
        return "over"

    driven = limited(step(), anyio.CancelScope(), 5)
    assert next(driven) == "wanted"
    with pytest.raises(StopIteration) as end:
        driven.throw(LookupError())

    assert end.value.value == "over"
