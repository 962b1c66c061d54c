"""However a session starts, what guards it is in force, or the start is refused with a clear message.

The table is the rows of `starts` by the columns of `guards`: a new row or column is one class there.
"""

from __future__ import annotations

import pytest

from tests.seams.cells import cells_of, hold
from tests.seams.columns.guard import Guard
from tests.seams.stage import Stage
from tests.seams.starts import STARTS, Start


@pytest.mark.parametrize(("start", "guard", "backend"), cells_of(STARTS))
def test_a_guard_is_in_force_however_the_session_starts(
    stage: Stage, start: Start, guard: Guard, backend: str
) -> None:
    hold(stage, start, guard, backend)
