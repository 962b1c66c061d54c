"""The sample of the great tables that a change runs; the night runs every cell.

A run that names no file takes, by a sum over each cell's own name, so that the sample hardly changes when other cells
come and go:

* of what is true on both event loops alike, one loop for each cell;
* of the ways to start a session with what guards it, a third of each guard's, and of each way on each event loop at
  least one.

Whoever names a file runs all of it. `AMPLIFIER_ALL_CELLS=1` does as well, and gives what takes long its full size.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Final, Protocol
from zlib import crc32

import pytest

__all__ = ["is_sampled", "sample_of", "size"]

ALL: Final = "AMPLIFIER_ALL_CELLS"
BACKENDS: Final = ("asyncio", "trio")

ON_ONE_LOOP: Final = (
    "::test_behavior[",
    "::test_the_embedded_model_behaves[",
    "plugins/amplifier-module-engine-dbos/tests/test_kills.py::",
    "plugins/amplifier-module-provider-local/tests/test_model.py::",
    "tests/acp/",
    "tests/app/store/test_charges.py::test_a_process_that_is_killed_again",
    "tests/cli/test_approval.py::",
    "tests/cli/test_chat.py::",
    "tests/cli/test_default_guards.py::",
    "tests/cli/test_left_turns.py::",
    "tests/cli/test_questions.py::",
    "tests/compat/test_pairs.py::",
    "tests/integration/test_one_question.py::test_no_dangerous_command_runs",
    "tests/integration/test_real_server.py::",
    "tests/mcp_server/",
    "tests/server/",
    "tests/serving/",
    "tests/testing/evals/test_real_model.py::",
    "tests/validation/faulty/test_faulty.py::",
)
"""The cells of which each runs on one event loop: the behaviours of all modules, stores and engines, what fails them,
the original's modules beside ours, long lists of commands and of places to be killed at, and what drives the whole of a
product: a command or the embedded model as a process, a server, an editor's sessions. Tests of their parts run on
both."""

ONE_IN_THREE: Final = ("tests/seams/test_matrix.py::", "tests/seams/test_moved.py::")
"""The cells of which each third runs: the ways to start a session, with what guards it."""


class _Node(Protocol):
    """A worker of pytest-xdist, as the process that starts it sees it."""

    config: pytest.Config
    workerinput: dict[str, object]


def is_sampled(name: str) -> bool:
    """Whether a run of everything includes a test that is no cell of starts and guards.

    Args:
        name: the test's, with its file and its parameters.
    """
    if any(table in name for table in ON_ONE_LOOP):
        cell, backend = _without_backend(name)
        return backend is None or crc32(cell.encode()) % 2 == BACKENDS.index(backend)
    return True


def sample_of(cells: Mapping[str, tuple[str, str]]) -> set[str]:
    """Return the cells of starts and guards that a run of everything includes.

    Args:
        cells: the start, with its event loop, and the guard of each, by the cell's name.
    """
    by_guard: dict[str, list[str]] = {}
    by_start: dict[str, list[str]] = {}
    for name in sorted(cells, key=lambda name: crc32(name.encode())):
        start, guard = cells[name]
        by_guard.setdefault(guard, []).append(name)
        by_start.setdefault(start, []).append(name)
    sample = {names[0] for names in by_start.values()}
    for names in by_guard.values():
        sample |= {*names[: ceil(len(names) / 3)]}
    return sample


def size(sample: int, whole: int) -> int:
    """Return how much of something is done: a sample, or the whole where every cell runs."""
    return whole if ALL in os.environ else sample


def _without_backend(name: str) -> tuple[str, str | None]:
    """Return a test's name without its event loop, and the event loop if it names one."""
    function, _, parameters = name.partition("[")
    words = parameters.removesuffix("]").split("-")
    found = [word for word in words if word in BACKENDS]
    if len(found) != 1:
        return name, None
    words.remove(found[0])
    return f"{function}[{'-'.join(words)}]", found[0]


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say that not every cell runs."""
    if _is_of_everything(config):
        return f"a sample of the great tables; {ALL}=1 runs every cell"
    return None


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may not be there
def pytest_configure_node(node: _Node) -> None:
    """Tell a worker what was asked for: it is given the folders of everything by name."""
    node.workerinput["sampled"] = _is_of_everything(node.config)


@pytest.hookimpl(tryfirst=True)  # of all cells, whatever markers are asked for
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out the cells that are not in the sample."""
    if not _is_of_everything(config):
        return
    tables: dict[Path, dict[str, tuple[str, str]]] = {}
    for item in items:
        if _is_one_in_three(item):
            tables.setdefault(item.path, {})[item.nodeid] = _cell(item)
    # each table by itself: which of them a run imports depends on its markers
    cells = {name for table in tables.values() for name in table}
    sample = {name for table in tables.values() for name in sample_of(table)}
    taken, left_out = [], []
    for item in items:
        name = item.nodeid
        if name in sample or (name not in cells and is_sampled(name)):
            taken.append(item)
        else:
            left_out.append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = taken


def _is_one_in_three(item: pytest.Item) -> bool:
    return item.nodeid.startswith(ONE_IN_THREE)


def _cell(item: pytest.Item) -> tuple[str, str]:
    """Return the names of a cell's start, with its event loop, and of its guard."""
    assert isinstance(item, pytest.Function)
    given: Mapping[str, object] = item.callspec.params
    start, guard = (getattr(given[each], "name", "") for each in ("start", "guard"))
    return f"{start} {given['backend']}", guard


def _is_of_everything(config: pytest.Config) -> bool:
    """Whether a run is of all tests, and so of the sample: no file was named, nor every cell asked for."""
    given: Mapping[str, object] = getattr(config, "workerinput", {})
    if "sampled" in given:
        return bool(given["sampled"])
    is_named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not is_named and ALL not in os.environ
