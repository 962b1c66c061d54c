"""Both backends, and a PostgreSQL server; where none is installed the tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from amplifier.testing.postgres import (
    PASSWORD,
    PostgresServer,
    find_programs,
    running_server,
)


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[PostgresServer]:
    """The server of a file's tests; the last of them ends it, and is marked as one that ends processes."""
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    with running_server(programs) as server:
        yield server


@pytest.fixture
def server(
    shared_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> PostgresServer:
    """The server, with its password in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    return shared_server


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return uuid4().hex
