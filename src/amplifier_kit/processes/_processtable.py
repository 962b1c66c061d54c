"""Which processes there are, and which of them descend from one: read from `/proc`, else asked of `ps`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

__all__ = ["PROC", "ProcessEntry", "descendants", "marked", "process_table"]

PROC: Final = "/proc"


class ProcessEntry(NamedTuple):
    """One process: its parent, and whether it has ended and waits to be collected."""

    parent: int
    ended: bool


def process_table(proc: str = PROC) -> dict[int, ProcessEntry]:
    """Return every process by its id."""
    if not os.path.exists(f"{proc}/self/stat"):
        return _table_of_ps()
    table: dict[int, ProcessEntry] = {}
    for name in os.listdir(proc):
        if name.isdigit():
            # A process may end between being listed and being read.
            with suppress(OSError), open(f"{proc}/{name}/stat", "rb") as stat:
                # The program's name stands in parentheses and may hold any character.
                state, parent = stat.read().rpartition(b")")[2].split()[:2]
                table[int(name)] = ProcessEntry(int(parent), state in (b"Z", b"X"))
    return table


def _table_of_ps() -> dict[int, ProcessEntry]:
    table: dict[int, ProcessEntry] = {}
    with os.popen("ps -axo pid=,ppid=,state=") as lines:  # noqa: S605, S607  # fixed text; `ps` is where the system has it
        for line in lines:
            pid, parent, state = line.split()[:3]
            table[int(pid)] = ProcessEntry(int(parent), state.startswith("Z"))
    return table


def descendants(
    root: int, table: Mapping[int, ProcessEntry], *, but: Collection[int] = ()
) -> list[int]:
    """Return the processes below one, parents first, without those below a process in `but`."""
    children: dict[int, list[int]] = {}
    for pid, entry in table.items():
        children.setdefault(entry.parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in but]
        found += below
        waiting += below
    return found


def marked(token: str, proc: str = PROC) -> list[int]:
    """Return the processes in whose environment a token stands; those that may not be read are left out."""
    wanted = token.encode()
    found: list[int] = []
    for name in os.listdir(proc) if os.path.isdir(proc) else ():
        if name.isdigit():
            with suppress(OSError), open(f"{proc}/{name}/environ", "rb") as environment:
                if wanted in environment.read():
                    found.append(int(name))
    return found
