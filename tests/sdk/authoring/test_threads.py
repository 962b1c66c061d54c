"""Blocking functions in worker threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import anyio
import pytest

from amplifier_sdk.threads import abandoned, run_blocking

WHO: ContextVar[str] = ContextVar("who", default="nobody")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Lets blocked threads go at the latest when the test ends."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_function_returns_its_value_from_another_thread() -> None:
    thread = await run_blocking(threading.current_thread, name="where")

    assert thread is not threading.current_thread()


async def test_what_a_function_raises_is_raised() -> None:
    def fail() -> None:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        await run_blocking(fail, name="fails")
    assert abandoned() == ()


async def test_context_variables_are_those_of_the_caller() -> None:
    WHO.set("caller")

    assert await run_blocking(WHO.get, name="asks") == "caller"


async def test_other_tasks_run_while_a_function_blocks(gate: threading.Event) -> None:
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(_block, gate)
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            gate.set()

    assert gate.is_set()


async def _block(gate: threading.Event) -> None:
    await run_blocking(gate.wait, name="blocks")


async def test_thread_that_outlives_caller_is_listed_until_it_ends(
    gate: threading.Event,
) -> None:
    began, ended = anyio.Event(), threading.Event()

    def block() -> None:
        anyio.from_thread.run_sync(began.set)
        gate.wait()

    def block_and_tell() -> None:
        try:
            block()
        finally:
            ended.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(_run, block_and_tell, "stubborn")
            await began.wait()
            group.cancel_scope.cancel()

        (entry,) = abandoned()
        assert entry.name == "stubborn"
        assert entry.since > 0

        gate.set()
        await anyio.to_thread.run_sync(ended.wait)
        # the thread takes itself off the list right after it told us
        while abandoned():
            await anyio.lowlevel.checkpoint()


async def _run(function: Callable[[], object], name: str) -> None:
    await run_blocking(function, name=name)


async def test_function_of_departed_caller_is_never_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting, ran = anyio.Event(), threading.Event()
    given: list[Callable[[], object]] = []

    async def slow_to_start(
        function: Callable[[], object], *, abandon_on_cancel: bool
    ) -> None:
        given.append(function)
        waiting.set()
        await anyio.sleep_forever()

    monkeypatch.setattr("anyio.to_thread.run_sync", slow_to_start)
    async with anyio.create_task_group() as group:
        group.start_soon(_run, ran.set, "late")
        await waiting.wait()
        group.cancel_scope.cancel()

    with pytest.raises(RuntimeError, match="not run"):
        given[0]()
    assert not ran.is_set()
    assert abandoned() == ()
