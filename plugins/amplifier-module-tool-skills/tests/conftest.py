"""Both backends, and the folders in which skills are."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's folder."""
    folder = tmp_path / "home"
    monkeypatch.setenv("AMPLIFIER_HOME", str(folder))
    monkeypatch.delenv("AMPLIFIER_SKILLS_DIR", raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder in which the person works."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
