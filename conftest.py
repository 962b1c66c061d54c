"""What holds for the tests of all packages here: how they are marked and measured, and that time is no measure."""

from __future__ import annotations

import asyncio.constants  # noqa: TID251  # its debug mode is what is set
import gc
import os
import platform
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from coverage import Coverage

COVERAGE: Final = "COVERAGE_PROCESS_START"
"""The variable that makes coverage measure a process that starts."""

MEASURED_CHILDREN: Final = (
    "plugins/amplifier-module-provider-local/tests/test_weights.py",
    "tests/kit/files/appendlog/test_processes.py",
)
"""The tests whose child processes are what is measured."""

MEASURED_TWICE: Final = ("tests/kernel/", "tests/kit/", "tests/sdk/")
"""The tests that are measured on both event loops: some branches of the kernel are taken on one of them alone."""

MARKER_OF: Final = {
    "os.exec": "process",
    "os.fork": "process",
    "os.forkpty": "process",
    "os.posix_spawn": "process",
    "os.system": "process",
    "subprocess.Popen": "process",
    "tests.figures": "figures",
}
"""The marker that a test needs for what it does, by the event that Python's auditing reports of it."""

_DONE: Final[dict[str, str]] = {}
"""The markers that the running test needs, each with what it did first."""

ROUND: Final = 1_000
"""How many tests run between two rounds of the garbage collector that leave out what is there."""

_RAN: Final[list[str]] = []

# how long an example takes depends on what else runs
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test on asyncio alone: on trio it runs the same lines, and a tracer triples its time."""
    if "trio" not in item.name or _path(item).startswith(MEASURED_TWICE):
        return (yield)
    with _unmeasured():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write down what was measured before a worker says that it is done: pytest-xdist then gives it ten seconds."""
    measuring = _coverage()
    if measuring is not None:
        measuring.save()


@pytest.fixture(autouse=True)
def coverage_of_children(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep coverage out of child processes: it doubles their time, and tests in this process run the same lines."""
    if _path(request.node) not in MEASURED_CHILDREN:
        monkeypatch.delenv(COVERAGE, raising=False)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    """Note what the running test does: an audit hook, which sees the work of all threads."""
    if event in MARKER_OF:
        _DONE.setdefault(MARKER_OF[event], f"{event}{arguments[:2]}")


def pytest_configure() -> None:
    """Begin to listen to what tests do, and let the garbage collector's full rounds be few.

    Each visits what is known of thirty thousand tests, and takes a second.
    """
    # asks a program, once for each process; vendors' libraries want to know
    platform.processor()
    sys.addaudithook(_note)
    gc.set_threshold(10_000, 20, 50)
    # debug mode stores where each callback and coroutine was made: ten frames of
    # each are a fifth of the time
    asyncio.constants.DEBUG_STACK_DEPTH = 1  # type: ignore[misc]  # Final in typeshed


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may not be there
def pytest_xdist_auto_num_workers() -> int | None:
    """Run one worker more than there are processors: tests also wait for disks, threads and time limits."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Let a worker that is done take tests from another, unless a way to distribute them is named."""
    if config.getvalue("dist") != "load":
        return None
    # it has no types, and may not be there
    scheduling = import_module("xdist.scheduler")
    scheduler: object = scheduling.WorkStealingScheduling(config, log)
    return scheduler


def pytest_collection_finish() -> None:
    """Leave what collection made out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Leave what pytest stores of the tests that ran out of those rounds as well."""
    _RAN.append(nodeid)
    if len(_RAN) == ROUND:
        _RAN.clear()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup() -> Generator[None]:
    """Begin to note what a test does; the fixtures that are made for it count as its own."""
    _DONE.clear()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail a test that lacks a marker: the quick run would leave it in."""
    yield
    for marker, what in _DONE.items():
        if item.get_closest_marker(marker) is None:
            pytest.fail(
                f"not marked with pytest.mark.{marker}: {what[:300]}", pytrace=False
            )


@pytest.fixture(autouse=True)
def no_weights(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the embedded model's weights, and where they could be fetched from, unless a test is marked `model`."""
    if request.node.get_closest_marker("model") is None:
        monkeypatch.setenv("AMPLIFIER_CACHE", os.devnull)
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("UV_OFFLINE", "1")


def _path(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


@contextmanager
def _unmeasured() -> Generator[None]:
    """Let coverage rest, if it measures this process."""
    measuring = _coverage()
    if measuring is None:
        yield
        return
    measuring.stop()
    try:
        yield
    finally:
        measuring.start()


def _coverage() -> Coverage | None:
    """Return what measures this process, if something does."""
    library = sys.modules.get("coverage")
    return library.Coverage.current() if library else None
