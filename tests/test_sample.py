"""The sample of the great tables: each row and column has a cell in it, and every cell is in the whole."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest

from amplifier.validation.behaviors import behaviors
from tests.sample import is_sampled, sample_of
from tests.seams.cells import cells_of
from tests.seams.starts import MOVED, STARTS, Start

BEHAVIOR = "plugins/amplifier-module-loop-basic/tests/test_conformance.py::TestBasicLoop::test_behavior"


def sample(starts: Iterable[Start]) -> list[Sequence[object]]:
    """Return the values of the cells of starts that are in the sample."""
    values = {str(cell.id): cell.values for cell in cells_of(starts)}
    cells = {
        name: (f"{getattr(start, 'name', '')} {backend}", getattr(guard, "name", ""))
        for name, (start, guard, backend) in values.items()
    }
    return [[*values[name]] for name in sample_of(cells)]


@pytest.mark.parametrize("starts", [STARTS, MOVED], ids=["starts", "moved"])
def test_each_start_and_each_guard_is_in_the_sample(starts: Sequence[Start]) -> None:
    cells = cells_of(starts)
    sampled = sample(starts)

    for place in range(3):  # start, guard, event loop
        assert {values[place] for values in sampled} == {
            cell.values[place] for cell in cells
        }
    assert {start for start, _, _ in sampled} == set(starts)
    # a third of each guard, rounded up
    assert 1 / 3 <= len(sampled) / len(cells) <= 1 / 2


def test_a_new_cell_leaves_the_sample_of_other_guards_as_it_is() -> None:
    cells = {
        f"{guard}-{start}": (start, guard) for guard in "abc" for start in "123456"
    }
    more = cells | {"a-7": ("7", "a")}

    changed = sample_of(cells) ^ sample_of(more)

    assert {name[0] for name in changed} == {"a"}


@pytest.mark.parametrize("kind", ["orchestrator", "tool", "provider"])
def test_each_behavior_runs_on_one_event_loop(kind: str) -> None:
    loops = [
        tuple(
            backend
            for backend in ("asyncio", "trio")
            if is_sampled(f"{BEHAVIOR}[{behavior.id}-{backend}]")
        )
        for behavior in behaviors(kind)
    ]

    assert set(loops) == {("asyncio",), ("trio",)}


@pytest.mark.parametrize(
    "name",
    [
        "tests/kernel/test_turns.py::test_a_turn[asyncio]",
        "tests/kernel/test_turns.py::test_a_turn[trio]",
        "tests/kernel/test_turns.py::test_a_turn",
        f"{BEHAVIOR}[tool.is-named]",
    ],
)
def test_what_is_no_cell_of_a_table_always_runs(name: str) -> None:
    assert is_sampled(name)


ROOT: Final = Path(__file__).parents[1]
WHOLE: Final = """
import pytest

@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("behavior", ["one", "two", "three"])
def test_behavior(behavior, backend):
    pass
"""
WORKER: Final = """
import pytest
from types import SimpleNamespace
from tests.sample import pytest_configure_node

def pytest_configure(config):
    # as pytest-xdist: a run of everything starts a worker, which is given the files by name
    starting = SimpleNamespace(args_source=pytest.Config.ArgsSource.TESTPATHS)
    node = SimpleNamespace(config=starting, workerinput={})
    pytest_configure_node(node)
    config.workerinput = node.workerinput
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "cells", "result"),
    [
        ([], {}, "3 passed, 3 deselected"),
        (["test_whole.py", "-p", "worker"], {}, "3 passed, 3 deselected"),
        (["test_whole.py"], {}, "6 passed"),
        ([], {"AMPLIFIER_ALL_CELLS": "1"}, "6 passed"),
    ],
)
def test_who_names_a_file_or_all_cells_runs_all(
    tmp_path: Path, arguments: list[str], cells: dict[str, str], result: str
) -> None:
    (tmp_path / "test_whole.py").write_text(WHOLE, "utf-8")
    (tmp_path / "worker.py").write_text(WORKER, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.sample", *arguments]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}"} | cells,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines()[-1].startswith(f"{result} in "), done.stdout
