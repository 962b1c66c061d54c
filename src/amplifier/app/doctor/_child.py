"""The child that imports modules: it reports each before and after, so that one that ends the process is known."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import IO

import anyio

from amplifier.kernel.modules.imports import ImportPaths
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.plans.plan import ModuleSpec
from amplifier_sdk.errors import ModuleError

__all__ = ["main"]


def main() -> None:
    """Import modules one after the other, write a line of JSON for each, and end the process.

    A line of standard input names them, and the file that the lines go to.
    """
    task = json.loads(sys.stdin.readline())
    with open(task["results"], "a", encoding="utf-8") as file:
        anyio.run(_import_all, task["ids"], file)
    sys.stdout.flush()
    os._exit(0)  # whatever threads the modules left


async def _import_all(ids: Sequence[str], file: IO[str]) -> None:
    loader, paths = ModuleLoader(), ImportPaths()
    for name in ids:
        _write(file, {"id": name})
        problem = None
        try:
            await loader.find(ModuleSpec(module=name, path="doctor"), paths=paths)
        except ModuleError as error:
            problem = error.reason
        _write(file, {"id": name, "problem": problem})


def _write(file: IO[str], line: dict[str, str | None]) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()
