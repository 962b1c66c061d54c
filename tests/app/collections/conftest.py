"""Git without anybody's configuration."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def own_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the developer's configuration of git out."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("AMPLIFIER_OFFLINE", raising=False)
