"""The watchdog: whoever keeps an event waiting for long is named while it does."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import anyio
import pytest
import structlog
from anyio import to_thread
from structlog.typing import EventDict, WrappedLogger

from amplifier import HookRegistry
from amplifier.kernel.hooks.watchdog import WAITING, Watchdog, watchdog
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.results import HookResult
from tests.doubles import Worker, build_session, call, calling

SECONDS = 10
"""How long a test waits for what must come."""


class Notes:
    """The reports of waiting handlers, and a latch that opens with the first."""

    def __init__(self) -> None:
        self.reports: list[dict[str, object]] = []
        self.latch = threading.Event()

    def __call__(
        self, logger: WrappedLogger, method: str, report: EventDict
    ) -> EventDict:
        self.reports.append(dict(report))
        self.latch.set()
        raise structlog.DropEvent

    def wait(self) -> None:
        """Block until something was reported."""
        assert self.latch.wait(SECONDS), "nothing was reported"


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread look fifty times a second."""
    monkeypatch.setattr("amplifier.kernel.hooks.watchdog.INTERVAL", 0.02)


@pytest.fixture
def reported() -> Iterator[Notes]:
    """What is reported while a test runs."""
    notes = Notes()
    structlog.configure(processors=[notes], cache_logger_on_first_use=False)
    yield notes
    structlog.reset_defaults()


def watched(**fields: object) -> HookRegistry:
    hooks = HookRegistry(hook_warning=0.01)
    hooks.set_default_fields(**fields)
    return hooks


async def test_observer_that_keeps_event_waiting_named_while_it_does(
    reported: Notes,
) -> None:
    async def slow(event: str, data: dict[str, object]) -> None:
        await to_thread.run_sync(reported.wait)

    hooks = watched(session_id="s1")
    hooks.register("x", slow)

    with anyio.fail_after(SECONDS):
        await hooks.emit("x", {})

    (report,) = reported.reports
    assert (report["event"], report["handler"], report["hook_event"]) == (
        "hook.waiting",
        "slow",
        "x",
    )
    assert report["session_id"] == "s1"


async def test_a_handler_that_blocks_the_event_loop_is_named_as_well(
    reported: Notes,
) -> None:
    hooks = watched()
    hooks.register("x", lambda event, data: reported.wait(), name="blocking")

    await hooks.emit("x", {})

    assert [report["handler"] for report in reported.reports] == ["blocking"]


@pytest.mark.parametrize("timeout", [None, 60.0])
async def test_a_handler_that_decides_is_named_before_its_deadline(
    reported: Notes, timeout: float | None
) -> None:
    async def guard(event: str, data: dict[str, object]) -> HookResult:
        await to_thread.run_sync(reported.wait)
        return HookResult.deny("late, but an answer")

    hooks = watched()
    hooks.register(TOOL_PRE, guard, timeout=timeout)

    with anyio.fail_after(SECONDS):
        emission = await hooks.emit(str(TOOL_PRE), {})

    assert emission.denied
    assert [report["handler"] for report in reported.reports] == ["guard"]


async def test_an_observer_beside_a_decider_is_named(reported: Notes) -> None:
    hooks = watched()
    hooks.register("x", lambda event, data: None, name="guard", decides=True)
    hooks.register("x", lambda event, data: reported.wait(), name="log")

    await hooks.emit("x", {})

    assert [report["handler"] for report in reported.reports] == ["log"]


async def test_a_handler_is_named_once_for_each_event(reported: Notes) -> None:
    async def held(event: str, data: dict[str, object]) -> None:
        await release.wait()

    async def look() -> None:
        """Return after the thread has looked: somebody new waits until it is named."""
        reported.latch = threading.Event()
        others = watched()
        others.register("look", lambda event, data: reported.wait(), name="other")
        await others.emit("look", {})

    hooks = watched()
    hooks.register("*", held)
    for event in ("x", "y", "x"):
        release = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(hooks.emit, event, {})
            await anyio.wait_all_tasks_blocked()
            await look()
            await look()
            release.set()

    assert [
        report["hook_event"]
        for report in reported.reports
        if report["handler"] == "held"
    ] == ["x", "y"]


async def test_a_session_says_how_long_is_long(reported: Notes) -> None:
    async def slow(event: str, data: dict[str, object]) -> None:
        await to_thread.run_sync(reported.wait)

    session = build_session(
        calling(call("work")), "done", tools=[Worker()], limits={"hook_warning": 0.01}
    )
    async with session:
        session.coordinator.hooks.register("tool:post", slow)
        with anyio.fail_after(SECONDS):
            assert await session.execute("go") == "done"

    assert [
        (report["handler"], report["session_id"]) for report in reported.reports
    ] == [("slow", session.session_id)]


async def test_nobody_is_left_in_the_list_of_who_waits() -> None:
    async def never(event: str, data: dict[str, object]) -> None:
        await anyio.sleep_forever()

    def fails(event: str, data: dict[str, object]) -> None:
        raise ValueError("no")

    hooks = HookRegistry()
    hooks.register("fails", fails)
    hooks.register("never", never)

    await hooks.emit("fails", {})
    with anyio.move_on_after(0.01):
        await hooks.emit("never", {})

    assert not WAITING


async def test_thread_ends_when_idle_and_restarts_with_next_event() -> None:
    hooks = HookRegistry()
    hooks.register("x", lambda event, data: None)

    await hooks.emit("x", {})
    (thread,) = watching()
    thread.join(SECONDS)

    assert not watching()
    assert not watchdog.is_awake
    await hooks.emit("x", {})
    watchdog.wake()
    assert len(watching()) == 1


def watching() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.name == "amplifier-watchdog"
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What the watchdog's clock shows, in place of the machine's."""
    now = [100.0]
    monkeypatch.setattr("amplifier.kernel.hooks.watchdog.perf_counter", lambda: now[-1])
    yield now
    WAITING.clear()


@pytest.mark.parametrize(
    ("waited", "seconds"), [(9.99, []), (10.0, [10.0]), (12.34, [12.3])]
)
def test_a_wait_is_named_from_its_session_s_limit_on(
    reported: Notes, clock: list[float], waited: float, seconds: list[float]
) -> None:
    hooks = HookRegistry(hook_warning=10.0)
    hooks.register("x", lambda event, data: None, name="slow")
    (registration,) = hooks.handlers_of(None)
    WAITING[1] = (registration, "x", {}, clock[-1])
    clock.append(clock[-1] + waited)

    Watchdog().look()

    assert [report["seconds"] for report in reported.reports] == seconds


def test_the_thread_ends_after_two_looks_at_nobody_in_a_row(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait between two of them begins the count anew."""
    hooks = HookRegistry(hook_warning=10.0)
    hooks.register("x", lambda event, data: None)
    (registration,) = hooks.handlers_of(None)
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        WAITING.clear()
        if len(looks) == 2:
            WAITING[1] = (registration, "x", {}, clock[-1])

    monkeypatch.setattr("amplifier.kernel.hooks.watchdog.sleep", sleep)

    Watchdog().watch()

    assert looks == [0.02] * 4
