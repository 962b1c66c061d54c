"""Repositories on this machine, for the tests of what is fetched, and git without anybody's configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

__all__ = ["TOOL_FILES", "commit", "git", "own_git"]

TOOL_FILES: Final[Mapping[str, str]] = {
    "pyproject.toml": '[project]\nname = "acme-tool"\ndependencies = ["acme-core-that-nobody-has>=1"]\n'
    '[project.entry-points."amplifier.modules"]\ntool-acme = "amplifier_module_tool_acme"\n',
    "amplifier_module_tool_acme.py": "from amplifier_sdk import tool\n\n@tool\ndef acme(text: str) -> str:\n"
    '    """Say it."""\n    return text\n',
}
"""The project of the module `tool-acme`."""


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, as nobody in particular."""
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    )
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str]) -> str:
    """Write files, commit all that is there, and return the commit; the repository is made where there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").is_dir():
        git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=Change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def own_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the developer's configuration of git out."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("AMPLIFIER_OFFLINE", raising=False)
