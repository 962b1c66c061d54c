"""Folders of a server of this test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.serving import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.setenv("AMPLIFIER_HOME", str(home))
    monkeypatch.chdir(folder)
    return Site(folder, home)
