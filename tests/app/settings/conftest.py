"""A person's home and a project, both empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.places import Places
from amplifier_sdk.kit.trust import PROJECT_FILES, TrustStore


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    home = tmp_path / "home"
    project = tmp_path / "shop"
    (home / ".amplifier").mkdir(parents=True)
    (project / ".amplifier").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("AMPLIFIER_HOME", raising=False)
    return Places.find(project)


def trust(places: Places) -> None:
    """Trust the project's settings as they are now."""
    store = TrustStore.in_home()
    store.grant(store.require(places.root, "settings", PROJECT_FILES["settings"]))
