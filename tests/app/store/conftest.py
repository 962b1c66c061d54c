"""The store of an empty project."""

from __future__ import annotations

import os

import pytest

from amplifier.app.directories import Places
from amplifier.app.store.store import ProjectSessions


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: nothing here cuts the power."""
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            monkeypatch.setattr(os, name, lambda _: None)


@pytest.fixture
def store(places: Places) -> ProjectSessions:
    return ProjectSessions.of(places)
