"""A repository with a module, and git without anybody's configuration."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.app.repositories import (  # a fixture of the tests here
    TOOL_FILES,
    commit,
    own_git,  # noqa: F401
)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that every test gets a copy of."""
    folder = tmp_path_factory.mktemp("repository")
    commit(folder, TOOL_FILES)
    return folder


@pytest.fixture
def repository(tmp_path: Path, made_once: Path) -> Path:
    """A repository with the module `tool-acme`."""
    return shutil.copytree(made_once, tmp_path / "acme")
