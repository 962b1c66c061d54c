"""What nobody waits for: how much may wait, and what becomes of it at the session's end."""

from __future__ import annotations

import anyio
import pytest

from amplifier.testing import create_test_session
from amplifier_module_hooks_shell._observers import Observers


async def test_more_than_may_wait_is_left_out_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[int] = []
    go = anyio.Event()

    async def work() -> None:
        await go.wait()
        done.append(1)

    async with create_test_session() as session:
        observers = Observers()
        await observers.open(session.coordinator)
        for _ in range(105):
            await observers.put(work)
        go.set()

    assert len(done) + observers.dropped == 105
    assert observers.dropped >= 4
    assert caplog.text.count("observing hooks wait") == 1


async def test_what_is_handed_over_is_done_in_order_when_session_ends() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        await anyio.lowlevel.checkpoint()
        done.append(number)

    async with create_test_session() as session:
        observers = Observers()
        await observers.open(session.coordinator)
        for number in range(5):
            await observers.put(lambda number=number: work(number))  # type: ignore[misc]  # each keeps its own number
            await anyio.lowlevel.checkpoint()

    assert done == [0, 1, 2, 3, 4]
