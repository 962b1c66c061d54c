"""Both backends, a git of nobody's configuration, and a repository to read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Protocol

import pytest


class Git(Protocol):
    """Runs git in a folder."""

    def __call__(self, folder: Path, *arguments: str) -> str: ...


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give git a home of its own, and temporary files a folder that can be looked into."""
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    (home / ".gitconfig").write_text(
        "[user]\n\tname = A\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n"
    )
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setattr("tempfile.tempdir", str(home / "tmp"))
    return home


@pytest.fixture
def git() -> Git:
    """Run git in a folder, as a person does."""

    def git(folder: Path, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ,
        )
        return done.stdout + done.stderr

    return git


@pytest.fixture
def repository(tmp_path: Path, git: Git) -> Path:
    """A repository with one commit, one changed file and a new one."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "kept.txt").write_text("one\n")
    (folder / "changed.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    (folder / "changed.txt").write_text("two\n")
    (folder / "new.txt").write_text("new\n")
    return folder
