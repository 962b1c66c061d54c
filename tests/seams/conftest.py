"""The stage of a cell, with the modules that are mounted there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import structlog

from amplifier.cli import _approval
from amplifier_kit.keyrings import Keyring
from amplifier_sdk import threads
from tests.app.installing import install
from tests.cli.conftest import _interruptible  # noqa: F401  # a fixture of the tests here
from tests.seams.modules import SCRIPT
from tests.seams.stage import Stage

MODULES: Final = {
    "trials": {
        "provider-ay": "tests.seams.modules:mount_ay",
        "provider-bee": "tests.seams.modules:mount_bee",
        "tool-trials": "tests.seams.modules:Trials",
        "tool-till": "tests.seams.modules:mount_till",
    },
    "sentinel": {"hooks-sentinel": "tests.seams.modules:Sentinel"},
}
"""The modules by the package, which is a folder of `sys.path`, that brings them."""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A home and a project of their own, where nobody can be asked."""
    for name, modules in MODULES.items():
        (tmp_path / name).mkdir()
        install(tmp_path / name, f"seam-{name}", modules)
        monkeypatch.syspath_prepend(tmp_path / name)
    for variable in (
        "AMPLIFIER_HOME",
        "AMPLIFIER_OFFLINE",
        "AMPLIFIER_MODULES",
        "AMPLIFIER_DEBUG",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(Keyring, "is_there", lambda _: False)
    monkeypatch.setattr(_approval, "TERMINAL", str(tmp_path / "no-terminal"))
    abandoned, before = threads.abandoned, threads.abandoned()
    monkeypatch.setattr(
        threads,
        "abandoned",
        lambda: tuple(thread for thread in abandoned() if thread not in before),
    )
    SCRIPT.begin()
    stage = Stage(tmp_path, monkeypatch)
    stage.set_up()
    monkeypatch.chdir(stage.project)
    yield stage
    structlog.reset_defaults()
