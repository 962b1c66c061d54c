"""A person at the command line: their own folder, an empty project, and what the commands answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier_kit.keyrings import Keyring
from tests.cli.programs import call

__all__ = ["answer", "person"]


def answer(*arguments: str, expect: int = 0) -> object:
    """Run a command and return the JSON value that it prints."""
    return json.loads(call(*arguments, "--output", "json", expect=expect).stdout)


@pytest.fixture(name="own", autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder; the working directory is an empty project."""
    home = tmp_path / "home" / ".amplifier"
    home.mkdir(parents=True)
    (tmp_path / "shop/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # this process may have opened the developer's already
    monkeypatch.setattr(Keyring, "is_there", lambda _: False)
    for variable in ("AMPLIFIER_HOME", "AMPLIFIER_OFFLINE", "AMPLIFIER_MODULES"):
        monkeypatch.delenv(variable, raising=False)
    return home
