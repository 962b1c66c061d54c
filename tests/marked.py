"""A run imports no file whose tests all have other markers than it wants.

Of the seven hundred files, those without a marker are half of what a run of marked tests takes to begin.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark.expression import Expression

__all__ = ["MARKERS", "is_left_out"]

MARKERS: Final = frozenset({"figures", "model", "process", "slow"})
"""The markers of tests that need something real; each stands in the file of the tests that bear it."""

MARKED_BY_OTHERS: Final = (
    "tests/reliability/test_kill_points.py",
    "tests/reliability/test_store_kill_points.py",
    "tests/seams/test_matrix.py",
)
"""Files whose tests take their markers from what they import."""

WORD: Final = re.compile(r"\w+")
MENTION: Final = re.compile(r"\bmark\.(\w+)")
ALL_BEAR: Final = re.compile(r"^pytestmark = (\[[^\]]*\]|.*)$", re.MULTILINE)


def _mentioned(file: Path) -> frozenset[str]:
    if file.as_posix().endswith(MARKED_BY_OTHERS):
        return MARKERS
    return _markers_in(file.read_text("utf-8"))


def _markers_in(source: str) -> frozenset[str]:
    return MARKERS.intersection(MENTION.findall(source))


def _fits(expression: str, markers: frozenset[str]) -> bool:
    def bears(name: str, /, **_: str | float | None) -> bool:
        return name in markers

    return Expression.compile(expression).evaluate(bears)


@cache
def _can_be_taken(
    expression: str, borne: frozenset[str], mentioned: frozenset[str]
) -> bool:
    """Whether a test may fit that bears some markers surely, and others that its file mentions perhaps."""
    named = frozenset(WORD.findall(expression)) - {"and", "or", "not"}
    if not named or not named <= MARKERS:
        return True
    perhaps = sorted(mentioned - borne)
    return any(
        _fits(expression, borne.union(some))
        for count in range(len(perhaps) + 1)
        for some in combinations(perhaps, count)
    )


def is_left_out(file: Path, expression: str) -> bool:
    """Whether none of a file's tests can be taken.

    Args:
        file: a module of tests.
        expression: what the markers of a test must be, as pytest takes it.
    """
    for_all = ALL_BEAR.search(file.read_text("utf-8"))
    borne = _markers_in(for_all[1]) if for_all else frozenset[str]()
    return not _can_be_taken(expression, borne, _mentioned(file))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file that has nothing of what is asked for."""
    if collection_path.suffix != ".py":
        return None
    expression: str = config.getoption("markexpr")
    return is_left_out(collection_path, expression) or None


@pytest.hookimpl(tryfirst=True)  # before some are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Require of a file that it mentions the markers of its tests.

    Raises:
        pytest.UsageError: one does not, and would be left out.
    """
    mentioned: dict[Path, frozenset[str]] = {}
    for item in items:
        file = item.path
        if file not in mentioned:
            mentioned[file] = _mentioned(file)
        if len(mentioned[file]) == len(MARKERS):
            continue
        borne = {mark.name for node in item.listchain() for mark in node.own_markers}
        if lacking := MARKERS.intersection(borne) - mentioned[file]:
            names = ", ".join(f"mark.{name}" for name in sorted(lacking))
            raise pytest.UsageError(f"{file} does not mention {names} of {item.name}")
