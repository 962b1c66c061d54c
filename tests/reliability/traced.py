"""A turn in a process of its own, killed or refused by the system at any of its calls; strace does both."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import anyio
import attrs
import pytest

__all__ = [
    "EVERYWHERE",
    "MARKS",
    "REASONS",
    "Case",
    "Point",
    "TracedTurn",
    "each",
    "effects_of",
    "may_trace",
    "on",
]

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
    """The n-th time that a thread makes a system call on one of the files that are watched."""

    call: str
    number: int
    file: str  # below the turn's folder

    def __str__(self) -> str:
        return f"{self.call}-{self.number}-{Path(self.file).name}"


Case: TypeAlias = tuple[str, str, Point]
"""What a test is run with: the loop or the error, the durability and the point."""


def on(backend: str) -> pytest.MarkDecorator:
    """Run a test on one backend, since it is a process that is tested; on both where everything is tried."""
    return pytest.mark.parametrize(
        "anyio_backend", ["asyncio", "trio"] if EVERYWHERE else [backend]
    )


@cache
def may_trace() -> bool:
    """Tell whether this system lets one process look at another."""
    if shutil.which("strace") is None:
        return False
    return (
        subprocess.run(
            ["strace", "-qq", "true"], capture_output=True, check=False
        ).returncode
        == 0
    )


@attrs.frozen(kw_only=True)
class TracedTurn:
    """A module that runs a turn: `python -m MODULE FOLDER BACKEND DURABILITY LOOP PROMPT` prints `Done.`.

    Args:
        module: the module.
        calls: the system calls that count, with commas.
        watched: the files on which they count, each by itself, below the turn's folder.
        spares: tells of a durability and a point whether a turn does without the call and ends well.
        prepare: gets a folder ready, and returns the environment's additions.
    """

    module: str
    calls: str
    watched: Sequence[str]
    spares: Callable[[str, Point], bool]
    prepare: Callable[[Path], Mapping[str, str]] = lambda _: {}

    def trace(
        self,
        folder: Path,
        files: Sequence[str],
        *options: str,
        backend: str,
        durability: str,
        loop: str = "basic",
    ) -> subprocess.CompletedProcess[str]:
        """Run the turn under strace, which counts the calls on these files for each thread by itself."""
        added = dict(self.prepare(folder))
        path = [added.pop("PYTHONPATH", ""), *sys.path]
        return subprocess.run(
            [
                *("strace", "-f", "-qq", "-e", f"trace={self.calls}", *options),
                *(word for file in files for word in ("-P", str(folder / file))),
                *(
                    sys.executable,
                    "-m",
                    self.module,
                    str(folder),
                    backend,
                    durability,
                    loop,
                    "Go.",
                ),
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

    async def kill(
        self, folder: Path, point: Point, *, backend: str, durability: str, loop: str
    ) -> None:
        """Run the turn and kill its process at a point."""
        inject = f"inject={point.call}:signal=SIGKILL:when={point.number}"
        done, _ = await self._inject(folder, point, inject, backend, durability, loop)
        assert done.returncode == -signal.SIGKILL, (
            f"{point} did not come; {done.stderr}"
        )

    async def refuse(
        self, folder: Path, point: Point, error: str, *, backend: str, durability: str
    ) -> None:
        """Run the turn and refuse it a call from a point on; the reason is told, and it ends as is expected."""
        inject = f"inject={point.call}:error={error}:when={point.number}+"
        done, log = await self._inject(
            folder, point, inject, backend, durability, "basic"
        )
        assert "(INJECTED)" in log, f"{point} did not come; {done.stderr}"
        assert REASONS[error] in done.stderr
        assert done.stdout == ("Done.\n" if self.spares(durability, point) else "")

    async def _inject(
        self,
        folder: Path,
        point: Point,
        inject: str,
        backend: str,
        durability: str,
        loop: str,
    ) -> tuple[subprocess.CompletedProcess[str], str]:
        log = folder.with_name("trace")
        options = ("-o", str(log), "-e", inject)
        done = await anyio.to_thread.run_sync(
            lambda: self.trace(
                folder,
                [point.file],
                *options,
                backend=backend,
                durability=durability,
                loop=loop,
            )
        )
        return done, log.read_text("utf-8")

    def points(self, durability: str) -> tuple[Point, ...]:
        """Return every point of the turn, counted in turns that nobody disturbs, one for each file."""
        return tuple(
            point
            for file in self.watched
            for point in self._points_at(file, durability)
        )

    def _points_at(self, file: str, durability: str) -> Iterator[Point]:
        """Yield the points at one file: of several threads, the one that makes the most calls."""
        with TemporaryDirectory() as name:
            folder = Path(name).resolve() / "place"
            folder.mkdir()
            log = folder.with_name("trace")
            done = self.trace(
                folder, [file], "-o", str(log), backend="asyncio", durability=durability
            )
            assert done.stdout == "Done.\n", done.stderr
            made = Counter(
                re.findall(r"^(\d+) +(\w+)\(", log.read_text("utf-8"), re.MULTILINE)
            )
        counts: dict[str, int] = {}
        for (_, call), count in made.items():
            counts[call] = max(count, counts.get(call, 0))
        for call, count in sorted(counts.items()):
            yield from (Point(call, number, file) for number in range(1, count + 1))

    def everywhere(self, loops: Sequence[str]) -> list[Case]:
        """Return every place where a turn can be killed: the loop, the durability and the point."""
        every = {
            durability: self.points(durability) for durability in ("written", "sync")
        }
        runs = [*((loop, "written") for loop in loops), ("basic", "sync")]
        return [
            (loop, durability, point)
            for loop, durability in runs
            for point in every[durability]
        ]

    def refusals(self) -> list[Case]:
        """Return everything that can be refused: the error, the durability and from which call on."""
        kinds = ("write", "fdatasync", "fsync", "renameat", "rename")
        found = [
            (durability, point)
            for durability in ("written", "sync")
            for point in self.points(durability)
        ]
        return [
            (error, durability, point)
            for error in REASONS
            for durability, point in found
            if point.call in kinds and (error != "EFBIG" or point.call == "write")
        ]


def each(
    sample: Sequence[tuple[str, str, Point]],
    every: Callable[[], Sequence[tuple[str, str, Point]]],
) -> list[object]:
    """Return what a test is run with: a sample, or everything where that is asked for and can be had."""
    cases = every() if EVERYWHERE and may_trace() else sample
    return [pytest.param(*case, id="-".join(map(str, case))) for case in cases]


def effects_of(folder: Path) -> list[str]:
    """Return the effects that the turn's tools had."""
    path = folder / "effects"
    return path.read_text("utf-8").splitlines() if path.exists() else []
