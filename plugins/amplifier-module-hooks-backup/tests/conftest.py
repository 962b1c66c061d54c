"""Both backends, and a home that is nobody's."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep what has no other place in a folder of the test."""
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
