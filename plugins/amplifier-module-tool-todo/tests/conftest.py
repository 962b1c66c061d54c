"""Both backends, and the application's folder for sessions."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The application's folder for sessions."""
    return tmp_path / "app"
