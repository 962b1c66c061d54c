"""What guards a session is in force after the session was in PostgreSQL: the rows of `test_matrix` for that."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from amplifier.testing.postgres import (
    PASSWORD,
    PostgresServer,
    find_programs,
    running_server,
)
from tests.seams.cells import cells_of, hold
from tests.seams.columns.guard import Guard
from tests.seams.stage import Stage
from tests.seams.starts import MOVED, Start

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    with running_server(programs) as running:
        yield running


@pytest.mark.parametrize(("start", "guard", "backend"), cells_of(MOVED))
def test_a_guard_is_in_force_after_the_session_was_moved(
    stage: Stage,
    start: Start,
    guard: Guard,
    backend: str,
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    stage.database, stage.namespace = server.url(), uuid4().hex

    hold(stage, start, guard, backend)
