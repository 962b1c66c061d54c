"""The store of an empty project."""

from __future__ import annotations

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store.store import ProjectSessions


@pytest.fixture
def store(dirs: AppDirs) -> ProjectSessions:
    return ProjectSessions.of(dirs)
