"""A turn in a process of its own, killed or refused by the system at any of its calls; strace does both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import anyio
import attrs
import pytest

__all__ = ["EVERYWHERE", "MARKS", "REASONS", "Case", "Point", "TracedTurn", "each", "effects_of", "may_trace", "on"]

EVERYWHERE: Final = "AMPLIFIER_KILL_POINTS" in os.environ
"""Whether every point is tried, as `nox -s kill_points` does; otherwise a few stand for all."""

REASONS: Final[Mapping[str, str]] = {
    "ENOSPC": "No space left on device",
    "EIO": "Input/output error",
    "EFBIG": "File too large",
}
"""The errors that the system gives, and how they are told."""

MARKS: Final = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
    pytest.mark.timeout(120),
    *([pytest.mark.slow] if EVERYWHERE else []),
]


@attrs.frozen
class Point:
    """The n-th of a system call on the files that are watched."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call}-{self.number}"


Case: TypeAlias = tuple[str, str, Point]
"""What a test is run with: the loop or the error, the durability and the point."""


def on(backend: str) -> pytest.MarkDecorator:
    """Run a test on one backend, since it is a process that is tested; on both where everything is tried."""
    return pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"] if EVERYWHERE else [backend])


@cache
def may_trace() -> bool:
    """Tell whether this system lets one process look at another."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-qq", "true"], capture_output=True, check=False).returncode == 0


@attrs.frozen(kw_only=True)
class TracedTurn:
    """A module that runs a turn: `python -m MODULE FOLDER BACKEND DURABILITY LOOP PROMPT` prints `Done.`.

    Args:
        module: the module.
        calls: the system calls that count, with commas.
        watched: returns the files on which they count.
        prepare: gets a folder ready, and returns the environment's additions.
    """

    module: str
    calls: str
    watched: Callable[[Path], Sequence[Path]]
    prepare: Callable[[Path], Mapping[str, str]] = lambda _: {}

    def trace(
        self, folder: Path, *options: str, backend: str, durability: str, loop: str = "basic"
    ) -> subprocess.CompletedProcess[str]:
        """Run the turn under strace."""
        added = dict(self.prepare(folder))
        path = [added.pop("PYTHONPATH", ""), *sys.path]
        return subprocess.run(
            [
                *("strace", "-f", "-qq", "-e", f"trace={self.calls}", *options),
                *(word for file in self.watched(folder) for word in ("-P", str(file))),
                *(sys.executable, "-m", self.module, str(folder), backend, durability, loop, "Go."),
            ],
            cwd=Path(__file__).parents[2],
            env={
                **os.environ,
                **added,
                "PYTHONPATH": os.pathsep.join(filter(None, path)),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    async def kill(self, folder: Path, point: Point, *, backend: str, durability: str, loop: str) -> None:
        """Run the turn and kill its process at a point."""
        inject = f"inject={point.call}:signal=SIGKILL:when={point.number}"
        await self._inject(folder, inject, backend, durability, loop)

    async def refuse(self, folder: Path, point: Point, error: str, *, backend: str, durability: str) -> None:
        """Run the turn and refuse it a call from a point on; it ends well, or tells why not."""
        inject = f"inject={point.call}:error={error}:when={point.number}+"
        done = await self._inject(folder, inject, backend, durability, "basic")
        assert done.stdout == "Done.\n" or REASONS[error] in done.stderr

    async def _inject(
        self, folder: Path, inject: str, backend: str, durability: str, loop: str
    ) -> subprocess.CompletedProcess[str]:
        return await anyio.to_thread.run_sync(
            lambda: self.trace(
                folder, "-o", os.devnull, "-e", inject, backend=backend, durability=durability, loop=loop
            )
        )

    def points(self, durability: str) -> tuple[Point, ...]:
        """Return every point of the turn, counted in one that nobody disturbs."""
        with TemporaryDirectory() as name:
            folder = Path(name).resolve() / "place"
            folder.mkdir()
            log = folder.with_name("trace")
            done = self.trace(folder, "-o", str(log), backend="asyncio", durability=durability)
            assert done.stdout == "Done.\n", done.stderr
            counts = Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text("utf-8"), re.MULTILINE))
        return tuple(Point(call, number) for call in sorted(counts) for number in range(1, counts[call] + 1))

    def everywhere(self, loops: Sequence[str]) -> list[Case]:
        """Return every place where a turn can be killed: the loop, the durability and the point."""
        every = {durability: self.points(durability) for durability in ("written", "sync")}
        runs = [*((loop, "written") for loop in loops), ("basic", "sync")]
        return [(loop, durability, point) for loop, durability in runs for point in every[durability]]

    def refusals(self) -> list[Case]:
        """Return everything that can be refused: the error, the durability and from which call on."""
        kinds = ("write", "fdatasync", "fsync", "renameat", "rename")
        found = [(durability, point) for durability in ("written", "sync") for point in self.points(durability)]
        return [
            (error, durability, point)
            for error in REASONS
            for durability, point in found
            if point.call in kinds and (error != "EFBIG" or point.call == "write")
        ]


def each(
    sample: Sequence[tuple[str, str, Point]], every: Callable[[], Sequence[tuple[str, str, Point]]]
) -> list[object]:
    """Return what a test is run with: a sample, or everything where that is asked for and can be had."""
    cases = every() if EVERYWHERE and may_trace() else sample
    return [pytest.param(*case, id="-".join(map(str, case))) for case in cases]


def effects_of(folder: Path) -> list[str]:
    """Return the effects that the turn's tools had."""
    path = folder / "effects"
    return path.read_text("utf-8").splitlines() if path.exists() else []
