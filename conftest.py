"""What holds for the tests of all packages here: how they are marked and measured, and that time is no measure."""

from __future__ import annotations

import functools
import gc
import os
import platform
import re
import subprocess
import sys
import traceback
from asyncio import constants, format_helpers  # noqa: TID251  # its debug mode is set
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pytest
from hypothesis import settings
from structlog.dev import ConsoleRenderer, plain_traceback

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

STARTERS: Final = (
    *((os, name) for name in ("execv", "execve", "fork", "forkpty", "system")),
    *((os, name) for name in ("posix_spawn", "posix_spawnp")),
    (subprocess.Popen, "__init__"),
)
"""What starts a process: a test that calls one needs the marker `process`."""

NO_WEIGHTS: Final = {
    "AMPLIFIER_CACHE": os.devnull,
    "PIP_NO_INDEX": "1",
    "UV_OFFLINE": "1",
}
"""The variables that hide the embedded model's weights, and where they could be fetched from."""

FEWER_PLUGINS: Final = "-p no:schemathesis -p no:hypothesispytest"
"""Options of each pytest that a test starts: it uses neither, and its start takes twice as long with both."""

_DONE: Final[dict[str, str]] = {}
"""The markers that the running test needs, each with what it did first."""

ROUND: Final = 1_000
"""How many tests run between two rounds of the garbage collector that leave out what is there."""

_RAN: Final[list[str]] = []

_FOLDERS: Final = count()

# how long an example takes depends on what else runs; they are drawn anew in each
# run, and many more at night
settings.register_profile("any-machine", deadline=None, max_examples=30)
settings.register_profile("nightly", deadline=None, max_examples=300)
settings.load_profile("any-machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give a test its environment, and measure it on asyncio alone.

    On trio it runs the same lines, and a tracer triples its time.
    """
    is_measured = "trio" not in item.name or _path(item).startswith(MEASURED_TWICE)
    with _surroundings(item), nullcontext() if is_measured else _unmeasured():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write down what was measured before a worker says that it is done: pytest-xdist then gives it ten seconds."""
    measuring = _coverage()
    if measuring is not None:
        measuring.save()


class _Starter(Protocol):
    __qualname__: str

    def __call__(self, *arguments: object, **options: object) -> object: ...


def _watch(owner: object, name: str) -> None:
    """Let a function that starts a process be noted when a test calls it.

    An audit hook would see the same, and be called for millions of other events.
    """
    function: _Starter = getattr(owner, name)

    @functools.wraps(function)
    def noted(*arguments: object, **options: object) -> object:
        _DONE.setdefault("process", f"{function.__qualname__}{arguments[1:2]}")
        return function(*arguments, **options)

    setattr(owner, name, noted)


def _freeze(freeze: Callable[[], None] = gc.freeze) -> None:
    """Collect what can be, and leave the rest out of the garbage collector's rounds."""
    gc.collect()
    freeze()


def _stay_frozen() -> None:
    """Let what was left out of those rounds stay out.

    A check of what a module leaves behind freezes the process for a moment. Behind it the
    next full round would visit everything: two seconds, hundreds of times.
    """
    setattr(gc, "freeze", _freeze)  # noqa: B010  # mypy lets no function be replaced
    setattr(gc, "unfreeze", lambda: None)  # noqa: B010  # likewise


def _wait_for_no_disk() -> None:
    """Let syncing be free: no test cuts the power, and disks take a third of the time. Child processes do sync."""
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            setattr(os, name, lambda _: None)


def _note_measurement() -> None:
    _DONE.setdefault("figures", "it measures")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to listen to what tests do, and let the garbage collector's full rounds be few.

    Each visits what is known of thirty thousand tests, and takes a second.
    """
    # asks a program, once for each process; vendors' libraries want to know
    platform.processor()
    for owner, name in STARTERS:
        _watch(owner, name)
    _wait_for_no_disk()
    # the tests of one plugin run without it as well
    with suppress(ModuleNotFoundError):
        import_module("tests.timing").listeners.append(_note_measurement)
        for name in ("bytecode", "marked", "sample"):
            config.pluginmanager.register(import_module(f"tests.{name}"))
    # a report's traceback is drawn with colours and the locals of each frame
    # otherwise: a tenth of the time
    ConsoleRenderer.get_active().exception_formatter = plain_traceback
    gc.set_threshold(10_000, 20, 50)
    _stay_frozen()
    # debug mode stores where each coroutine, callback and future was made: ten frames
    # of the first, all of the others, which nothing but their defaults limit. Even one
    # frame of those asks the system about its file, a fifth of the time
    constants.DEBUG_STACK_DEPTH = 1  # type: ignore[misc]  # Final in typeshed
    for extract in (traceback.extract_stack, format_helpers.extract_stack):
        extract.__defaults__ = (None, 0)


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
    _freeze()


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Leave what pytest stores of the tests that ran out of those rounds as well."""
    _RAN.append(nodeid)
    if len(_RAN) == ROUND:
        _RAN.clear()
        _freeze()


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


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return an empty folder of the test's own.

    pytest's fixture looks through the folders of all earlier tests for a number that is free.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(_FOLDERS)}"
    path.mkdir(mode=0o700)
    return path


@contextmanager
def _surroundings(item: pytest.Item) -> Generator[None]:
    """Give a test the environment that its kind has, whatever is set outside."""
    with pytest.MonkeyPatch.context() as patch:
        # coverage doubles the time of child processes, and tests in this process
        # run the same lines
        if COVERAGE in os.environ and _path(item) not in MEASURED_CHILDREN:
            patch.delenv(COVERAGE)
        patch.setenv("PYTEST_ADDOPTS", FEWER_PLUGINS)
        if item.get_closest_marker("model") is None:
            for name, value in NO_WEIGHTS.items():
                patch.setenv(name, value)
        elif "AMPLIFIER_CACHE" not in os.environ:
            # one for all, whichever home a test gives its processes
            patch.setenv("AMPLIFIER_CACHE", str(Path.home() / ".cache" / "amplifier"))
        yield


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
