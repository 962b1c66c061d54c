"""The deadline of a foreign call is set when the call first waits."""

from __future__ import annotations

from collections.abc import Generator
from math import inf
from types import coroutine

import anyio
import pytest

from amplifier.kernel.budgets.deadlines import deadlines_held
from amplifier.kernel.foreign import ForeignCall
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


async def test_a_call_that_answers_at_once_has_no_deadline() -> None:
    scope = anyio.CancelScope()

    assert await ForeignCall("call", scope, 5).run(answer()) == 1
    assert scope.deadline == inf


async def test_call_that_waits_has_its_deadline_from_its_beginning_on() -> None:
    scope = anyio.CancelScope()
    deadlines: list[float] = []

    async def work() -> str:
        await anyio.lowlevel.checkpoint()
        deadlines.append(scope.deadline)
        return "end"

    begun = anyio.current_time()
    assert await ForeignCall("call", scope, 5).run(work()) == "end"

    assert begun + 4.5 < deadlines[0] <= anyio.current_time() + 5


async def test_a_call_that_takes_longer_is_cancelled_and_may_clean_up() -> None:
    scope = anyio.CancelScope()
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                cleaned.append("up")

    with anyio.fail_after(5):
        await ForeignCall("call", scope, 0.01).run(work())

    assert scope.cancelled_caught
    assert cleaned == ["up"]


async def test_what_a_wait_raises_is_the_call_s() -> None:
    async def work() -> str:
        with pytest.raises(TimeoutError), anyio.fail_after(0):
            await anyio.sleep_forever()
        return "went on"

    assert await ForeignCall("call", anyio.CancelScope(), 5).run(work()) == "went on"


async def test_while_a_deadline_is_held_none_is_set() -> None:
    span, scope = Span("s"), anyio.CancelScope()
    left: list[float] = []

    async def work() -> None:
        with deadlines_held():
            await anyio.lowlevel.checkpoint()
            left.append(scope.deadline)
        left.append(scope.deadline - anyio.current_time())

    token = current_span.set(span)
    span.scope, span.limit = scope, 5
    await ForeignCall("call", scope, 5, span=span).run(work())
    current_span.reset(token)

    assert left[0] == inf
    assert left[1] == pytest.approx(5, abs=0.5)


async def test_scopes_are_of_the_backend_s_own_class() -> None:
    make = type(anyio.CancelScope())
    with make() as inner:
        inner.cancel()
        await anyio.sleep_forever()

    assert inner.cancelled_caught


async def test_a_call_without_a_scope_has_no_deadline() -> None:
    async def work() -> str:
        await anyio.lowlevel.checkpoint()
        return "end"

    assert await ForeignCall("call", None, 5).run(work()) == "end"


async def test_a_call_that_is_closed_while_it_waits_is_left() -> None:
    log: list[str] = []

    async def work() -> object:
        return await wait(log)

    driven = ForeignCall("call", None, 5).run(work())
    assert next(driven) == "wanted"
    driven.close()

    assert log == ["left"]


async def test_an_error_that_ends_a_wait_may_end_the_call() -> None:
    log: list[str] = []

    async def work() -> object:
        with pytest.raises(LookupError):
            await wait(log)
        return "over"

    driven = ForeignCall("call", None, 5).run(work())
    assert next(driven) == "wanted"
    with pytest.raises(StopIteration) as end:
        driven.throw(LookupError())

    assert end.value.value == "over"


async def test_an_error_after_the_deadline_is_no_cancellation() -> None:
    log: list[str] = []

    async def work() -> object:
        return await wait(log)

    scope = anyio.CancelScope()
    driven = ForeignCall("call", scope, grace=0).run(work())
    assert next(driven) == "wanted"
    scope.cancel()
    with pytest.raises(LookupError):
        driven.throw(LookupError())

    assert log == ["left"]
