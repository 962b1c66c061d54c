"""The virtual clock."""

from __future__ import annotations

import threading
import time
from functools import partial

import anyio
import pytest
from anyio import to_thread
from anyio.abc import ByteReceiveStream

from amplifier.testing import (
    MockTool,
    ScriptedProvider,
    VirtualClock,
    answer,
    call,
    create_test_session,
)
from amplifier_sdk import tool
from amplifier_sdk.errors import LLMTimeoutError

pytestmark = pytest.mark.parametrize("backend", ["asyncio", "trio"])

DAY = 86_400.0


def test_time_begins_at_zero_and_sleeps_pass_at_once(backend: str) -> None:
    async def main() -> list[float]:
        times = [anyio.current_time()]
        for seconds in (0.5, DAY, 100 * DAY):
            await anyio.sleep(seconds)
            times.append(anyio.current_time())
        return times

    started = time.monotonic()
    assert VirtualClock().run(main, backend=backend) == pytest.approx(
        [0.0, 0.5, 0.5 + DAY, 0.5 + 101 * DAY]
    )
    assert time.monotonic() - started < 5


def test_arguments_are_passed_on(backend: str) -> None:
    async def add(left: int, right: int) -> int:
        return left + right

    assert VirtualClock().run(add, 1, 2, backend=backend) == 3


def test_sleepers_wake_in_the_order_of_their_times(backend: str) -> None:
    async def main() -> list[tuple[int, float]]:
        woken: list[tuple[int, float]] = []

        async def sleep(seconds: int) -> None:
            await anyio.sleep(seconds)
            woken.append((seconds, anyio.current_time()))

        async with anyio.create_task_group() as group:
            for seconds in (300, 100, 200):
                group.start_soon(sleep, seconds)
        return woken

    assert VirtualClock().run(main, backend=backend) == [
        (100, 100.0),
        (200, 200.0),
        (300, 300.0),
    ]


def test_deadlines_pass_at_their_time(backend: str) -> None:
    async def main() -> float:
        with anyio.move_on_after(60) as scope:
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        with pytest.raises(TimeoutError), anyio.fail_after(30):
            await anyio.sleep(31)
        return anyio.current_time()

    assert VirtualClock().run(main, backend=backend) == pytest.approx(90.0)


def test_time_stands_still_while_a_task_works(backend: str) -> None:
    async def main() -> float:
        with anyio.fail_after(0.001):
            for _ in range(1000):
                await anyio.lowlevel.checkpoint()
        return anyio.current_time()

    assert VirtualClock().run(main, backend=backend) == 0.0


def test_time_passes_as_outside_while_a_thread_works(backend: str) -> None:
    async def main() -> float:
        with anyio.fail_after(10):
            await to_thread.run_sync(time.sleep, 0.05)
        during = anyio.current_time()
        await anyio.sleep(DAY)
        assert anyio.current_time() >= DAY
        return during

    assert 0.04 < VirtualClock().run(main, backend=backend) < 5


def test_a_deadline_passes_while_a_thread_blocks(backend: str) -> None:
    async def main() -> bool:
        release = threading.Event()
        with anyio.move_on_after(0.02) as scope:
            await to_thread.run_sync(partial(release.wait, 5), abandon_on_cancel=True)
        release.set()
        return scope.cancelled_caught

    assert VirtualClock().run(main, backend=backend)


@pytest.mark.process
def test_a_threshold_waits_for_what_is_real(backend: str) -> None:
    async def main() -> bytes:
        async with await anyio.open_process(
            ["/bin/sh", "-c", "sleep 0.05; echo done"]
        ) as process:
            with anyio.fail_after(3600):
                assert isinstance(process.stdout, ByteReceiveStream)
                line = await process.stdout.receive()
                await process.wait()
            return line

    assert VirtualClock(threshold=5.0).run(main, backend=backend) == b"done\n"


def test_a_sessions_time_outs_pass_at_once(backend: str) -> None:
    async def hang(_: object) -> object:
        await anyio.sleep_forever()
        raise AssertionError

    @tool
    def slowly() -> str:
        """Works in a thread."""
        time.sleep(0.01)
        return "worked"

    async def main() -> dict[object, object]:
        session = create_test_session(
            answer(call("hang", id="a"), call("slowly", id="b")),
            "Done",
            tools=[MockTool("hang", hang), slowly],
        )
        async with session:
            assert await session.execute("Go") == "Done"
            return dict(session.coordinator.context.results)  # type: ignore[attr-defined]  # the double has them

    results = VirtualClock().run(main, backend=backend)

    assert "120" in str(results["a"])
    assert results["b"] == "worked"


def test_a_providers_silence_is_an_error_after_its_time(backend: str) -> None:
    async def main() -> float:
        async with create_test_session(
            provider=ScriptedProvider(answer("Half", 100_000.0))
        ) as session:
            with pytest.raises(LLMTimeoutError):
                await session.execute("Go")
        return anyio.current_time()

    assert VirtualClock().run(main, backend=backend) == pytest.approx(60.0)


def test_a_loop_can_be_asked_whether_its_time_is_virtual(backend: str) -> None:
    async def main() -> bool:
        return VirtualClock.is_running()

    assert VirtualClock().run(main, backend=backend)
    assert not anyio.run(main, backend=backend)


def test_an_unknown_backend_is_refused(backend: str) -> None:
    with pytest.raises(
        ValueError,
        match="No virtual clock for the backend 'curio'; there is one for 'asyncio'",
    ):
        VirtualClock().backend(f"curi{backend[-1]}")
