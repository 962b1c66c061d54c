"""The stage of a cell, with the modules that are mounted there."""

from __future__ import annotations

import shutil
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
from tests.seams.stage import Beginnings, Stage

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


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages that bring the modules of all cells."""
    folder = tmp_path_factory.mktemp("packages")
    for name, modules in MODULES.items():
        install(folder / name, f"seam-{name}", modules)
    return folder


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all cells play, one after the other."""
    return tmp_path_factory.mktemp("stage")


@pytest.fixture(scope="session")
def beginnings(tmp_path_factory: pytest.TempPathFactory) -> Beginnings:
    """What the cells so far began."""
    return Beginnings(tmp_path_factory.mktemp("beginnings"))


@pytest.fixture
def stage(
    root: Path,
    packages: Path,
    beginnings: Beginnings,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stage]:
    """A home and a project of their own, where nobody can be asked."""
    shutil.rmtree(root)
    root.mkdir()
    for name in MODULES:
        monkeypatch.syspath_prepend(packages / name)
    for variable in (
        "AMPLIFIER_HOME",
        "AMPLIFIER_OFFLINE",
        "AMPLIFIER_MODULES",
        "AMPLIFIER_DEBUG",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(root / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(Keyring, "is_there", lambda _: False)
    monkeypatch.setattr(_approval, "TERMINAL", str(root / "no-terminal"))
    abandoned, before = threads.abandoned, threads.abandoned()
    monkeypatch.setattr(
        threads,
        "abandoned",
        lambda: tuple(thread for thread in abandoned() if thread not in before),
    )
    SCRIPT.begin()
    stage = Stage(root, packages, beginnings, monkeypatch)
    stage.set_up()
    monkeypatch.chdir(stage.project)
    yield stage
    structlog.reset_defaults()
