"""What pytest compiles of the tests, compiled once: each worker takes a share and reads the others' from the cache.

Workers collect the same files in the same order at the same time, so without this each of them would compile all of
them in a clone that has not run the tests before: ten seconds of each processor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

__all__ = ["compile_files"]

ROOT: Final = Path(__file__).parents[1]
COMPILED: Final = ("src/amplifier", "tests", "plugins/*/tests")
"""The folders whose modules pytest compiles, with asserts that say what they compared: tests, and its plugins."""


def compile_files(config: pytest.Config, files: Iterable[Path]) -> None:
    """Let pytest compile files and store what it made of them, without running them.

    It does nothing with `--assert=plain`, where modules are compiled as anywhere.
    """
    hook = config.pluginmanager.rewrite_hook
    if not isinstance(hook, AssertionRewritingHook):
        return
    for file in files:
        module = ModuleType(file.stem)
        module.__spec__ = ModuleSpec(file.stem, None, origin=str(file))
        # without builtins it ends at its first import or class
        vars(module)["__builtins__"] = {}
        with suppress(ImportError, NameError):
            hook.exec_module(module)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile this worker's share."""
    worker: Mapping[str, object] = getattr(session.config, "workerinput", {})
    if not worker or sys.dont_write_bytecode:
        return
    number = int(str(worker["workerid"]).removeprefix("gw"))
    files = sorted(
        file
        for pattern in COMPILED
        for folder in ROOT.glob(pattern)
        for file in folder.rglob("*.py")
    )
    compile_files(session.config, files[number :: int(str(worker["workercount"]))])
