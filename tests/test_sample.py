"""The sample of the great tables: each row and column has a cell in it, and every cell is in the whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from amplifier.validation.behaviors import behaviors
from tests.sample import is_sampled
from tests.seams.cells import cells_of
from tests.seams.guards import GUARDS
from tests.seams.starts import MOVED, STARTS

BEHAVIOR = "plugins/amplifier-module-loop-basic/tests/test_conformance.py::TestBasicLoop::test_behavior"


def test_each_start_and_each_guard_is_in_the_sample() -> None:
    test = "tests/seams/test_matrix.py::test_a_guard_is_in_force_however_the_session_starts"
    cells = cells_of(STARTS)
    sampled = [cell.values for cell in cells if is_sampled(f"{test}[{cell.id}]")]

    assert {start for start, _, _ in sampled} == set(STARTS)
    assert {guard for _, guard, _ in sampled} == set(GUARDS)
    assert {backend for _, _, backend in sampled} == {"asyncio", "trio"}
    assert 0.3 < len(sampled) / len(cells) < 0.37


def test_each_way_to_move_a_session_is_in_the_sample() -> None:
    test = "tests/seams/test_moved.py::test_a_guard_is_in_force_after_the_session_was_moved"
    sampled = [
        cell.values for cell in cells_of(MOVED) if is_sampled(f"{test}[{cell.id}]")
    ]

    assert {start for start, _, _ in sampled} == set(MOVED)


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


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "cells", "result"),
    [
        ([], {}, "3 passed, 3 deselected"),
        (["-n1"], {}, "3 passed"),
        (["test_whole.py"], {}, "6 passed"),
        ([], {"AMPLIFIER_ALL_CELLS": "1"}, "6 passed"),
    ],
)
def test_who_names_a_file_or_all_cells_runs_all(
    tmp_path: Path, arguments: list[str], cells: dict[str, str], result: str
) -> None:
    (tmp_path / "test_whole.py").write_text(WHOLE, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.sample", *arguments]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | cells,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines()[-1].startswith(f"{result} in "), done.stdout
