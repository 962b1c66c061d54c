"""Modules, and a person's home with a project, for the tests of the application."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from tests.app.installing import module_site  # noqa: F401  # a fixture of the tests here

InstallModule = Callable[[str, str, str], None]


@pytest.fixture
def install_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallModule:
    """Return a function that installs a distribution of one module: its name, module id and entry point."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def install(distribution: str, module_id: str, target: str) -> None:
        folder = site / f"{distribution.replace('-', '_')}-1.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n", "utf-8"
        )
        (folder / "entry_points.txt").write_text(
            f"[amplifier.modules]\n{module_id} = {target}\n", "utf-8"
        )

    return install


@pytest.fixture
def dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppDirs:
    """A person's home and a project, both empty."""
    (tmp_path / "home" / ".amplifier").mkdir(parents=True)
    (tmp_path / "shop" / ".amplifier").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AMPLIFIER_HOME", raising=False)
    return AppDirs.find(tmp_path / "shop")
