"""A repository with a module, and git without anybody's configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.app.repositories import TOOL_FILES, commit


@pytest.fixture(autouse=True)
def own_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the developer's configuration of git out."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("AMPLIFIER_OFFLINE", raising=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the module `tool-acme`."""
    folder = tmp_path / "acme"
    commit(folder, TOOL_FILES)
    return folder
