"""The cells of the table: each is a way to start a session, and what guards it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from tests.seams.columns.guard import Guard
from tests.seams.guards import GUARDS
from tests.seams.modules import SCRIPT
from tests.seams.stage import Outcome, Stage, script
from tests.seams.starts import Start

__all__ = ["cells_of", "hold"]


def cells_of(starts: Iterable[Start]) -> list[ParameterSet]:
    """Return the cells of rows: the start, the guard, and the event loop."""
    rows = tuple(starts)
    return [
        pytest.param(
            start,
            guard,
            backend,
            id=f"{guard.name}-{start.name}-{backend}",
            marks=[pytest.mark.process] if guard.runs_programs else [],
        )
        for guard in GUARDS
        for start in rows
        if start.name not in guard.without
        for backend in start.backends
    ]


def hold(stage: Stage, start: Start, guard: Guard, backend: str) -> None:
    """Start the session of a cell, and assert that the guard is in force or that the start is refused."""
    stage.backend, stage.guard = backend, guard.name
    stage.by_profile = guard.by_profile or start.by_profile
    stage.profile = guard.profile
    stage.made = guard.made()
    stage.calls = guard.calls
    stage.write()
    guard.prepare(stage)
    stage.since = lambda: guard.tighten(stage, start)
    SCRIPT.turns = {**script(guard.begin, stage.calls, stage.prompt), **guard.turns()}

    outcome = start.play(stage)

    guard.holds(stage, start, outcome)
    if outcome.is_refused and start.can_refuse:
        _assert_clear(outcome)
    else:
        guard.plays(stage, start, outcome)


def _assert_clear(outcome: Outcome) -> None:
    """Assert that a refusal says in a line or two what is refused, and no more: no traceback, no wrong usage."""
    assert outcome.code == 1, outcome.text
    assert outcome.shown == ""
    assert "Traceback" not in outcome.reported
    assert 20 < len(outcome.reported) < 1000, outcome.reported
