"""Folders of a test's own for whatever modules write; the figures of the runs stand behind the tests' own report."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.figures import write_figures
from tests.reliability.stage import AppDirs, Site, site


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures."""
    write_figures(terminalreporter)


@pytest.fixture
def dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppDirs:
    """Make the folders, and make them those of the process."""
    made = AppDirs(
        home=tmp_path / "home",
        temporary=tmp_path / "short-lived",
        project=tmp_path / "project",
    )
    for root in made.roots:
        root.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("AMPLIFIER_HOME", str(made.home / ".amplifier"))
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(made.project)
    return made


@pytest.fixture
def web_site() -> Iterator[Site]:
    """Serve pages for one test."""
    with site() as served:
        yield served
