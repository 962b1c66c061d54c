"""The log for tasks: order, cancellation, and what may be taken when."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import process_time

import anyio
import pytest
from anyio import ClosedResourceError, to_thread

from amplifier.testing import wait_for
from amplifier_kit.files.appendlog import AppendError, AppendLog, AppendLogFile
from amplifier_kit.files.locks import LockedError
from amplifier_sdk import JSONValue
from amplifier_sdk.stores import LogEntry
from tests.kit.files.appendlog.systems import System


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.jsonl"


@pytest.fixture
async def log(path: Path) -> AsyncIterator[AppendLog]:
    log = await AppendLog.open(path, holds="notes")
    yield log
    await log.aclose()


def data(log: AppendLog) -> list[JSONValue]:
    return [record.data for record in log.take()]


async def stored(path: Path) -> list[JSONValue]:
    log = await AppendLog.open(path, holds="notes")
    await log.aclose()
    return data(log)


async def test_what_is_appended_can_be_taken_once_in_order(log: AppendLog) -> None:
    await log.append("note", "one")
    await log.append("note", {"two": (2,)})

    assert data(log) == ["one", {"two": [2]}]
    assert log.take() == []
    await log.append("note", "three")
    assert data(log) == ["three"]


async def test_what_was_there_can_be_taken_first(path: Path) -> None:
    log = await AppendLog.open(path, holds="notes", durability="sync")
    assert log.durability == "sync"
    await log.append("note", "one")
    await log.aclose()

    log = await AppendLog.open(path, holds="notes")
    await log.append("note", "two")

    assert data(log) == ["one", "two"]
    assert log.size == path.stat().st_size
    assert log.path == path
    await log.aclose()


async def test_a_record_is_written_as_it_is_now(log: AppendLog) -> None:
    value: dict[str, JSONValue] = {"text": "now"}
    await log.append("note", value)
    value["text"] = "later"

    assert data(log) == [{"text": "now"}]


async def test_file_gets_what_is_to_be_written_in_place_of_data(
    log: AppendLog, path: Path
) -> None:
    await log.append("note", {"key": "secret"}, written={"key": "withheld"})
    await log.aclose()

    assert data(log) == [{"key": "secret"}]
    assert await stored(path) == [{"key": "withheld"}]


async def test_the_headers_kind_is_not_for_records(log: AppendLog) -> None:
    with pytest.raises(
        ValueError, match="'log' is the kind of a log's header; choose another"
    ):
        await log.append("log", "one")


async def test_what_cannot_be_written_is_neither_in_file_nor_taken(
    log: AppendLog, path: Path
) -> None:
    with pytest.raises(ValueError, match="It cannot be written as JSON"):
        await log.append("note", {"a": object()})  # type: ignore[dict-item]  # the point of the test

    assert log.take() == []
    assert path.stat().st_size == 0


async def test_a_full_disk_is_told_and_the_log_goes_on(
    log: AppendLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append("note", "one")
    System(fails_at=1).install(monkeypatch)

    with pytest.raises(AppendError) as full:
        await log.append("note", "two")
    await log.append("note", "three")

    assert full.value.errno == errno.ENOSPC
    assert data(log) == ["one", "three"]
    await log.aclose()
    assert await stored(path) == ["one", "three"]


async def test_records_appended_at_once_are_taken_in_order_of_file(
    log: AppendLog, path: Path
) -> None:
    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(log.append, "note", number)

    taken = data(log)
    await log.aclose()
    assert len(taken) == 40
    assert await stored(path) == taken


async def test_cancelled_append_is_whole_and_taken_or_it_is_not_there(
    log: AppendLog, path: Path
) -> None:
    for steps in range(6):
        async with anyio.create_task_group() as group:
            group.start_soon(log.append, "note", steps)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    await log.append("note", "last")

    taken = data(log)
    await log.aclose()
    assert await stored(path) == taken
    assert taken[-1] == "last"
    assert set(taken[:-1]) <= set(range(6))


def holding(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Make the next append wait in its thread: tell when it is there, go on when told to."""
    there, go = threading.Event(), threading.Event()
    append: Callable[[AppendLogFile, bytes], None] = AppendLogFile.append

    def wait(file: AppendLogFile, line: bytes) -> None:
        monkeypatch.setattr(AppendLogFile, "append", append)
        there.set()
        assert go.wait(10)
        append(file, line)

    monkeypatch.setattr(AppendLogFile, "append", wait)
    return there, go


async def test_a_cancelled_append_ends_when_its_record_is_stored(
    log: AppendLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, go = holding(monkeypatch)
    async with anyio.create_task_group() as group:
        group.start_soon(log.append, "note", "one")
        await to_thread.run_sync(there.wait)
        group.cancel_scope.cancel()
        go.set()

    assert data(log) == ["one"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_task_that_asyncio_cancels_itself_leaves_memory_as_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    log = await AppendLog.open(path, holds="notes")
    there, go = holding(monkeypatch)
    task = asyncio.create_task(log.append("note", "one"))
    await to_thread.run_sync(there.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()

    await log.append("note", "two")
    taken: list[object] = []

    def both() -> bool:
        taken.extend(data(log))
        return len(taken) == 2

    assert await wait_for(both, 10)  # the thread of the first one is nobody's any more
    await log.aclose()
    assert sorted(map(str, taken)) == ["one", "two"]
    assert await stored(path) == taken


async def test_replacing_puts_other_records_into_the_file(
    log: AppendLog, path: Path
) -> None:
    await log.append("note", "one")
    await log.replace(
        LogEntry(kind="note", data=text, at=1) for text in ("two", "three")
    )
    await log.append("note", "four")

    assert data(log) == ["one", "four"]
    await log.aclose()
    assert await stored(path) == ["two", "three", "four"]


async def test_a_sync_without_anything_to_sync_asks_no_thread(
    log: AppendLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = System().install(monkeypatch)
    await log.append("note", "one")
    await log.sync()
    await log.sync()

    assert system.log == ["write", "fdatasync", "open", "fsync", "close"]


async def test_a_closed_log_takes_nothing(log: AppendLog) -> None:
    await log.aclose()
    await log.aclose()

    with pytest.raises(ClosedResourceError):
        await log.append("note", "one")
    with pytest.raises(ClosedResourceError):
        await log.sync()


async def test_a_second_writer_is_refused_within_a_second(
    log: AppendLog, path: Path
) -> None:
    waits: list[float] = []
    # a busy machine may hold up one or two
    while not waits or (min(waits) >= 1 and len(waits) < 5):
        began = anyio.current_time()
        with pytest.raises(
            LockedError, match="It is being written by this process itself on"
        ):
            await AppendLog.open(path, holds="notes")
        waits.append(anyio.current_time() - began)

    assert min(waits) < 1


async def test_a_writer_that_is_about_to_let_go_is_waited_for(path: Path) -> None:
    first = await AppendLog.open(path, holds="notes")
    async with anyio.create_task_group() as group:
        group.start_soon(first.aclose)
        second = await AppendLog.open(path, holds="notes", timeout=10)
    await second.aclose()


async def test_damage_is_told(path: Path) -> None:
    log = await AppendLog.open(path, holds="notes")
    await log.append("note", "one")
    await log.aclose()
    path.write_bytes(path.read_bytes() + b"torn")

    log = await AppendLog.open(path, holds="notes")
    await log.aclose()

    assert [(piece.is_tail, piece.data) for piece in log.damage] == [(True, b"torn")]


async def test_thousand_messages_are_read_within_fifth_of_second(
    path: Path,
) -> None:
    log = await AppendLog.open(path, holds="notes")
    await log.replace(
        LogEntry(kind="note", data={"role": "user", "content": "x" * 800}, at=1)
        for _ in range(1000)
    )
    await log.aclose()

    times = []
    for _ in range(3):
        began = process_time()
        log = await AppendLog.open(path, holds="notes")
        times.append(process_time() - began)
        await log.aclose()
        assert len(log.take()) == 1000

    assert min(times) < 0.2
