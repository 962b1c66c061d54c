"""Whole processes: ready to run, imports, discovery. Every sample is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, bar, figure

__all__ = ["discovery", "imports", "ready"]

READY: Final = {"asyncio": 2.6, "trio": 3.4}
EMPTY: Final = "import asyncio\nasync def main(): pass\nasyncio.run(main())"

FIRST_TURN: Final = """
import sys
import anyio
from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk import tool

@tool
async def noop(x: int, y: str = "") -> str:
    "Return the number as text."
    return str(x)

plan = {
    "session": {"orchestrator": "loop-basic", "context": "context-simple"},
    "providers": [{"module": "provider-scripted", "config": {"responses": ["done"]}}],
    "tools": ["tool-noop"],
}

async def main():
    session = AmplifierSession(plan, ModuleLoader(modules={"tool-noop": noop}, path=[sys.argv[1]]))
    await session.initialize()
    assert await session.execute("go") == "done"
    await session.cleanup()

anyio.run(main, backend=sys.argv[2])
"""

IMPORTS: Final = {
    "from amplifier_sdk import tool, ToolResult": "from amplifier_sdk import tool, ToolResult",
    "from amplifier import AmplifierSession": "from amplifier import AmplifierSession",
    "the same on top of anyio, attrs, pluggy": "from amplifier import AmplifierSession",
}
LIBRARIES: Final = "import anyio, attrs, pluggy"

MODULES: Final = {
    "loop-basic": "amplifier_module_loop_basic:BasicLoop",
    "context-simple": "amplifier_module_context_simple:SimpleContext",
    "provider-scripted": "amplifier_module_provider_scripted:ScriptedProvider",
}

FIND: Final = """
import sys, time
sys.path.append(sys.argv[1])
{imports}
started = time.perf_counter()
found = {find}
took = time.perf_counter() - started
assert len([entry for entry in found if {name}.startswith('tool-made')]) == int(sys.argv[2]), len(found)
print(took)
"""
OURS: Final = FIND.format(
    imports="from amplifier import ModuleLoader; loader = ModuleLoader()",
    find="loader.discover()",
    name="entry.id",
)
THEIRS: Final = FIND.format(
    imports="from importlib.metadata import entry_points",
    find="list(entry_points(group='amplifier.modules'))",
    name="entry.name",
)


def _python(code: str, *arguments: str) -> str:
    """Run a process to its end and return what it printed."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if key != "PYTHONDONTWRITEBYTECODE"
    }
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    ).stdout


def _wall(code: str, *arguments: str) -> Callable[[], float]:
    def sample() -> float:
        started = perf_counter()
        _python(code, *arguments)
        return perf_counter() - started

    return sample


def ready(backend: str, effort: Effort) -> list[Row]:
    """A process that finds, imports and mounts its modules and finishes a first turn."""
    with tempfile.TemporaryDirectory() as folder:
        for module, target in MODULES.items():
            _install(Path(folder), module, target)
        result = paired(
            _wall(FIRST_TURN, folder, backend), _wall(EMPTY), effort, per=1000
        )
    detail = f"{result.subject:,.0f} ms, asyncio.run of nothing {result.floor:,.0f} ms"
    return [bar(f"ready to run, {backend}", result.ratio, READY[backend], detail)]


def imports(backend: str, effort: Effort) -> list[Row]:
    """What our imports add to a bare interpreter: the fastest of many processes, in milliseconds."""
    codes = {
        "": "pass",
        LIBRARIES: LIBRARIES,
        **{code: code for code in IMPORTS.values()},
    }
    best = dict.fromkeys(codes, float("inf"))
    end = perf_counter() + effort.seconds * 2
    rounds = 0
    while rounds < effort.pairs + 1 or perf_counter() < end:
        for name, code in codes.items():
            best[name] = min(best[name], _wall(code)())
        rounds += 1
    rows = []
    for what, code in IMPORTS.items():
        below = best[LIBRARIES] if "on top" in what else best[""]
        rows.append(
            figure(
                what,
                (best[code] - below) * 1e3,
                f"fastest of {rounds} processes each",
                unit=" ms",
            )
        )
    return rows


def discovery(backend: str, effort: Effort) -> list[Row]:
    """Finding the modules among 10, 100 and 300 more distributions, against `importlib.metadata`."""
    rows = []
    for count in (10, 100, 300):
        with tempfile.TemporaryDirectory() as folder:
            for number in range(count):
                _install(Path(folder), f"tool-made-{number}", f"made_{number}:mount")
            pairs = [_found(folder, count) for _ in range(effort.pairs + 1)][1:]
        detail = (
            f"{median(ours for ours, _ in pairs):.3g} ms, "
            f"entry_points() {median(them for _, them in pairs):.3g} ms"
        )
        rows.append(
            figure(
                f"discovery among {count} distributions",
                median(ours / them for ours, them in pairs),
                detail,
            )
        )
    return rows


def _found(folder: str, count: int) -> tuple[float, float]:
    """Return the milliseconds that we and `importlib.metadata` took, each in a process of its own."""
    ours, theirs = (
        _python(OURS, folder, str(count)),
        _python(THEIRS, folder, str(count)),
    )
    return float(ours) * 1e3, float(theirs) * 1e3


def _install(folder: Path, module: str, target: str) -> None:
    """Write the metadata of a distribution that offers one module."""
    name = f"bench_{module.replace('-', '_')}"
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(
        f"[amplifier.modules]\n{module} = {target}\n", encoding="utf-8"
    )
