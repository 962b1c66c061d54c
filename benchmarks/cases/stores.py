"""Listing and searching the stored sessions of a project that has many."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time, sleep
from typing import Final

import anyio

from amplifier.app.store.overview import latest_sessions
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.search import search_folders
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.writer import JOURNAL, METADATA, TRANSCRIPT
from benchmarks.pairing import Effort
from benchmarks.rows import Row, bar

__all__ = ["stores"]

COUNT: Final = 10_000
SAID: Final = "The parser module fails when its cache is read twice. " * 12
LIST_MS: Final = 50.0
SEARCH_MS: Final = 300.0
"""A tenth of what a store of 100,000 may take."""


def stores(backend: str, effort: Effort) -> list[Row]:
    """List and search 10,000 sessions whose index is made; the effort has no say in it."""
    with TemporaryDirectory() as root:
        store = ProjectSessions(Path(root))
        sample = anyio.run(_sample, store, backend=backend)
        for number in range(COUNT):
            _copy(store, sample, number)
        # The index takes in no record that changed within the last two seconds.
        sleep(2.1)
        latest_sessions([store.sessions], 1)
        return [
            _row("list", LIST_MS, _listed(store)),
            _row("search", SEARCH_MS, _searched(store)),
        ]


def _row(what: str, limit: float, taken: list[float]) -> Row:
    detail = f"fastest of {len(taken)}, CPU time"
    name = f"{what} of {COUNT:,} stored sessions"
    return bar(name, min(taken) * 1e3, limit, detail, unit=" ms")


def _listed(store: ProjectSessions) -> list[float]:
    taken = []
    for _ in range(3):
        started = process_time()
        found = latest_sessions([store.sessions], 20)
        taken.append(process_time() - started)
        if found.count != COUNT + 1:
            raise RuntimeError(f"{found.count} sessions were listed")
    return taken


def _searched(store: ProjectSessions) -> list[float]:
    """Search for what no session holds, so that all are searched."""
    taken = []
    for _ in range(3):
        started = process_time()
        found = search_folders([store.sessions], "zebra")
        taken.append(process_time() - started)
        if found.hits or found.unread:
            raise RuntimeError("the search found what is not there")
    return taken


async def _sample(store: ProjectSessions) -> dict[str, bytes]:
    """Return the logs of a session in which something was said."""
    async with store.open(SessionRecord(session_id="sample")) as opened:
        await opened.store_turn(
            "t1", [{"role": "user", "content": SAID}], opened.record
        )
    return {name: (opened.folder / name).read_bytes() for name in (TRANSCRIPT, JOURNAL)}


def _copy(store: ProjectSessions, logs: dict[str, bytes], number: int) -> None:
    record = SessionRecord(
        session_id=f"session-{number}",
        created=float(number),
        updated=float(number),
        prompt=f"Explain why test {number} fails",
        turn_count=1,
    )
    folder = store.folder(record.session_id)
    folder.mkdir(mode=0o700)
    (folder / METADATA).write_bytes(record.to_bytes())
    for name, data in logs.items():
        (folder / name).write_bytes(data)
