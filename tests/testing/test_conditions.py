"""Waiting for a condition."""

from __future__ import annotations

import anyio
import pytest

from amplifier.testing import VirtualClock, wait_for


async def test_a_condition_that_holds_is_met_at_once() -> None:
    assert await wait_for(lambda: True, timeout=0)


async def test_a_condition_may_come_to_hold() -> None:
    done: list[str] = []

    async def work() -> None:
        await anyio.sleep(0.005)
        done.append("done")

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        assert await wait_for(lambda: done, timeout=5)


async def test_a_condition_that_never_holds_is_told_so() -> None:
    assert not await wait_for(lambda: False, timeout=0.01)


async def test_an_awaitable_is_awaited() -> None:
    event = anyio.Event()

    async with anyio.create_task_group() as group:
        group.start_soon(wait_for, event.wait, 5)
        await anyio.wait_all_tasks_blocked()
        event.set()

    assert await wait_for(event.wait())
    assert await wait_for(event.wait, timeout=5)


async def test_an_awaitable_that_never_ends_is_cancelled() -> None:
    assert not await wait_for(anyio.Event().wait(), timeout=0.01)


async def test_an_async_function_may_answer() -> None:
    answers = [False, False, True]

    async def condition() -> bool:
        return answers.pop(0)

    assert await wait_for(condition, timeout=5)
    assert answers == []


async def test_an_error_of_the_condition_is_the_callers() -> None:
    def condition() -> bool:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await wait_for(condition)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_long_wait_is_looked_at_seldom(backend: str) -> None:
    looks = 0

    def condition() -> bool:
        nonlocal looks
        looks += 1
        return anyio.current_time() > 86_400

    async def main() -> float:
        assert await wait_for(condition, timeout=1_000_000)
        return anyio.current_time()

    assert VirtualClock().run(main, backend=backend) < 110_000
    assert looks < 250
