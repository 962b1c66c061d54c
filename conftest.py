"""What holds for the tests of all packages here: how they are measured, and that time is no measure."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
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

MEASURED_TWICE: Final = ("tests/kernel/", "tests/sdk/")
"""The tests that are measured on both event loops: some branches of the kernel are taken on one of them alone."""

settings.register_profile("any-machine", deadline=None)  # how long an example takes depends on what else runs
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
def coverage_of_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep coverage out of child processes: it doubles their time, and tests in this process run the same lines."""
    if _path(request.node) not in MEASURED_CHILDREN:
        monkeypatch.delenv(COVERAGE, raising=False)


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
