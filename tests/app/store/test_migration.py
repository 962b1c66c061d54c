"""Sessions are moved to another store whole, or stay where they are."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store.choice import migrate_named
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.leases import LEASE
from amplifier.app.store.migration import migrate_sessions
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.errors import ConfigError, StoreUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogName, SessionLog, StoredQuestion
from tests.app.store.talks import HELLO, ROME, interrupt, keep, record

GOLDEN: Final = Path(__file__).parents[2] / "data" / "sessions"


@pytest.fixture
def source(store: ProjectSessions) -> FileSessionStore:
    return FileSessionStore(store)


@pytest.fixture
def target(tmp_path: Path) -> FileSessionStore:
    return FileSessionStore(ProjectSessions(tmp_path / "other"))


def _files(store: FileSessionStore) -> dict[str, bytes]:
    """Return the files of all sessions; the lease says who wrote last, and is none of the session's."""
    return {
        str(file.relative_to(store.files.sessions)): file.read_bytes()
        for file in store.files.sessions.rglob("*")
        if file.is_file() and file.name != LEASE
    }


async def test_a_family_is_moved_and_comes_back_byte_for_byte(
    source: FileSessionStore, target: FileSessionStore
) -> None:
    await keep(source.files, turns=[HELLO, ROME], name="trip", tags=("x",))
    await keep(source.files, "s1-kid", [HELLO], parent_id="s1", plan={"tools": []})
    await interrupt(source.files, await keep(source.files, "s2"))
    (source.files.folder("s1") / "composition.json").write_bytes(b'{"version": 1}\n')
    question = StoredQuestion(
        question_id="q1", session_id="s1", prompt="?", options=("yes",)
    )
    lease = await source.acquire("s1", owner="worker 1", period=60)
    await source.ask(lease, question)
    await source.answer("q1", "yes", by="ann")
    await source.release(lease)
    before = _files(source)

    there = await migrate_sessions(source, target)
    assert _files(source) == {}
    assert sorted(there.moved) == ["s1", "s1-kid", "s2"]
    assert _files(target) == before
    await migrate_sessions(target, source)

    assert _files(source) == before
    assert _files(target) == {}


@pytest.mark.parametrize("version", sorted(path.name for path in GOLDEN.iterdir()))
async def test_what_earlier_versions_said_is_moved_byte_for_byte(
    version: str, target: FileSessionStore, tmp_path: Path
) -> None:
    folder = shutil.copytree(GOLDEN / version, tmp_path / "state")
    source = FileSessionStore(ProjectSessions(folder))
    # what its format does not hold in one piece, no reader has
    damaged = {name for name, _ in _refusals(source)}
    before = _files(source)

    done = await migrate_sessions(source, target)

    assert set(done.refused) == damaged
    for name, content in _files(target).items():
        if name.endswith(".jsonl"):
            assert content == before[name], name
    assert len(done.moved) >= 20
    assert (done.open, done.taken) == ((), ())


def _refusals(store: FileSessionStore) -> list[tuple[str, str]]:
    return [(path.name, why) for path, why in store.files.damaged()]


async def test_only_what_is_named_is_moved(
    source: FileSessionStore, target: FileSessionStore
) -> None:
    await keep(source.files, "s1", [HELLO])
    await keep(source.files, "s2", [HELLO])

    done = await migrate_sessions(source, target, ["s2", "s3"])

    assert done.moved == ("s2",)
    assert done.refused == {"s3": "There is no session 's3'"}
    assert [each.record.session_id for each in source.files.all()] == ["s1"]


async def test_what_is_open_taken_or_no_file_stays(
    source: FileSessionStore, target: FileSessionStore
) -> None:
    for name in ("open", "taken", "odd", "damaged"):
        await keep(source.files, name, [HELLO])
    await keep(target.files, "taken", [ROME])
    (source.files.folder("odd") / "folder").mkdir()
    transcript = source.files.folder("damaged") / "transcript.jsonl"
    transcript.write_bytes(transcript.read_bytes().replace(b"Hello", b"Hallo", 1))
    before = _files(source)

    async with source.files.open(record("open")):
        done = await migrate_sessions(source, target)

    assert (done.moved, done.open, done.taken) == ((), ("open",), ("taken",))
    assert set(done.refused) == {"odd", "damaged"}
    assert "no file that a store takes along" in done.refused["odd"]
    assert "session repair damaged" in done.refused["damaged"]
    after = _files(source)
    assert {name: after[name] for name in before if "/journal" not in name} == {
        name: content for name, content in before.items() if "/journal" not in name
    }


@attrs.frozen
class _Ending(FileSessionStore):
    """A store whose server ends at the given call of a method."""

    calls: list[str] = attrs.field(factory=list)
    last: int = 0

    def _count(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) == self.last:
            raise StoreUnavailableError("the server ended")

    async def write_record(self, lease: Lease, record: JSONObject) -> None:
        self._count("write_record")
        await super().write_record(lease, record)

    async def replace(self, lease: Lease, log: LogName, content: SessionLog) -> None:
        self._count("replace")
        await super().replace(lease, log, content)

    async def write_document(self, lease: Lease, name: str, content: bytes) -> None:
        self._count("write_document")
        await super().write_document(lease, name, content)

    async def delete(
        self, session_id: str, *, leases: Sequence[Lease] = ()
    ) -> tuple[str, ...]:
        self._count("delete")
        return await super().delete(session_id, leases=leases)


@pytest.mark.parametrize("last", range(1, 9))
async def test_a_move_that_ends_anywhere_is_made_anew(
    source: FileSessionStore, target: FileSessionStore, last: int
) -> None:
    await keep(source.files, turns=[HELLO])
    await keep(source.files, "s1-kid", [HELLO], parent_id="s1")
    await keep(source.files, "s1-cut", [HELLO], parent_id="s1")
    before = _files(source)
    ending = _Ending(target.files, last=last)

    with pytest.raises(StoreUnavailableError):
        await migrate_sessions(source, ending)
    assert _files(source) == before

    done = await migrate_sessions(source, target)
    assert done.refused == {}
    assert sorted(done.moved) == ["s1", "s1-cut", "s1-kid"]
    assert _files(source) == {}
    assert _files(target) == before


async def test_a_move_that_ends_before_the_deletion_is_only_completed(
    source: FileSessionStore, target: FileSessionStore
) -> None:
    await keep(source.files, turns=[HELLO])
    before = _files(source)
    with pytest.raises(StoreUnavailableError):
        await migrate_sessions(_Ending(source.files, last=1), target)
    assert _files(source) == _files(target) == before

    done = await migrate_sessions(source, target)

    assert done.moved == ("s1",)
    assert (_files(source), _files(target)) == ({}, before)


@attrs.frozen
class _Losing(FileSessionStore):
    """A store that loses the last entry of each log."""

    async def replace(self, lease: Lease, log: LogName, content: SessionLog) -> None:
        less = attrs.evolve(content, entries=content.entries[:-1])
        await super().replace(lease, log, less)


async def test_what_is_not_read_as_it_was_written_stays(
    source: FileSessionStore, target: FileSessionStore
) -> None:
    await keep(source.files, turns=[HELLO])

    done = await migrate_sessions(source, _Losing(target.files))

    assert "is not read as it was written" in done.refused["s1"]
    assert [each.record.session_id for each in source.files.all()] == ["s1"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("files", "both stores are the same"),
        ("oracle://me:secret@host/db", "oracle: no store; known: files"),
        ("elsewhere", "elsewhere: no store"),
    ],
)
async def test_a_store_that_nobody_knows_is_refused(
    dirs: AppDirs, target: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        await migrate_named(
            dirs, source="files", target=target, only=(), namespace="shop"
        )
    assert "secret" not in str(refused.value)
