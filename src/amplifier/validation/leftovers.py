"""What a module leaves behind in the process when its session has ended."""

from __future__ import annotations

import gc
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import attrs

__all__ = ["Leftovers", "settle"]

_GRACE: Final = 1.0
"""Seconds in which what is ending may end."""

_WORKERS: Final = (
    "AnyIO worker",
    "Trio thread",
    "Trio worker",
    "asyncio_",
    "amplifier-watchdog",
)
"""How the threads begin that an event loop or the kernel keeps for all sessions of the process."""


@attrs.frozen(kw_only=True)
class Leftovers:
    """Threads, tasks, open files and child processes, each by an identity and a text for people."""

    things: dict[tuple[str, object], str]

    @classmethod
    def baseline(cls) -> Leftovers:
        """Count what there is before something begins; `settle` returns what it left."""
        # what is here already need not be checked again, which takes half a second in a large process
        gc.freeze()
        return cls.now()

    @classmethod
    def now(cls) -> Leftovers:
        """Count what there is in this process."""
        # Identities and not objects: to hold one would keep alive what is to go.
        things: dict[tuple[str, object], str] = {}
        for thread in threading.enumerate():
            if not thread.name.startswith(_WORKERS):
                things["thread", thread.ident] = f"the thread {thread.name!r}"
        for task in anyio.get_running_tasks():
            things["task", task.id] = f"the task {task.name!r}"
        for number, name in _open_files():
            things["file", (number, name)] = f"the open file {name}"
        for process in _children():
            things["process", process] = f"the process {process}"
        return cls(things=things)

    def since(self, before: Leftovers) -> list[str]:
        """Return what was not there before."""
        return [text for key, text in self.things.items() if key not in before.things]


async def settle(before: Leftovers) -> list[str]:
    """Wait a moment for what is ending; return what is still there and was not before."""
    try:
        left = _left(before)
        with anyio.move_on_after(_GRACE):
            # threads and processes take a moment to end
            while left:
                await anyio.sleep(0.02)
                left = _left(before)
        return left
    finally:
        # other checks of the process want their garbage collected
        gc.unfreeze()


def _left(before: Leftovers) -> list[str]:
    # what waits for the collector is no leftover: files close when it has run
    gc.collect()
    return Leftovers.now().since(before)


def _open_files() -> list[tuple[int, str]]:
    """List the open file descriptors; where the system cannot name them, by their numbers."""
    found = []
    for entry in os.listdir("/dev/fd"):
        try:
            os.fstat(int(entry))
            if sys.platform == "linux":
                name = os.readlink(f"/proc/self/fd/{entry}")
            else:
                name = f"descriptor {entry}"
        except OSError:
            continue  # the descriptor of the listing itself
        found.append((int(entry), name))
    return found


def _children() -> list[str]:
    found: list[str] = []
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended since
            found += file.read_text().split()
    return found
