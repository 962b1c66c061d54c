"""However a session starts, what guards it is in force, or the start is refused with a clear message.

The table is the rows of `starts` by the columns of `guards`: a new row or column is one class there.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.seams.columns.guard import Guard
from tests.seams.guards import GUARDS
from tests.seams.modules import SCRIPT
from tests.seams.stage import Outcome, Stage, script
from tests.seams.starts import STARTS, Start

CELLS: Final = [
    pytest.param(
        start,
        guard,
        backend,
        id=f"{guard.name}-{start.name}-{backend}",
        marks=[pytest.mark.process] if guard.runs_programs else [],
    )
    for guard in GUARDS
    for start in STARTS
    if start.name not in guard.without
    for backend in start.backends
]


@pytest.mark.parametrize(("start", "guard", "backend"), CELLS)
def test_a_guard_is_in_force_however_the_session_starts(
    stage: Stage, start: Start, guard: Guard, backend: str
) -> None:
    stage.backend = backend
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
        assert_clear(outcome)
    else:
        guard.plays(stage, start, outcome)


def assert_clear(outcome: Outcome) -> None:
    """Assert that a refusal says in a line or two what is refused, and no more: no traceback, no wrong usage."""
    assert outcome.code == 1, outcome.text
    assert outcome.shown == ""
    assert "Traceback" not in outcome.told
    assert 20 < len(outcome.told) < 1000, outcome.told
