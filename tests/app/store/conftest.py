"""The store of an empty project."""

from __future__ import annotations

import pytest

from amplifier.app.directories import Places
from amplifier.app.store.store import ProjectSessions


@pytest.fixture
def store(places: Places) -> ProjectSessions:
    return ProjectSessions.of(places)
