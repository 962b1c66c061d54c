"""A person's home, trial modules, and a project that an editor has open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import trials  # noqa: F401  # a fixture of the tests here


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "notes.txt").write_text("old text\n")
    return folder
