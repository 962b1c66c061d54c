"""The index of a store: it saves time, and never changes what is listed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from amplifier.app.store import overview
from amplifier.app.store.index import INDEX, MIN_SESSIONS, IndexRow, SessionIndex
from amplifier.app.store.overview import SessionOverview, latest_sessions
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_record
from amplifier.app.store.writer import METADATA, TRANSCRIPT, write_record
from tests.app.store.talks import record

COUNT = 25
SAID = b'{"said": "%s"}\n' % (b"x" * 300)


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at every file as if it had been written an hour ago."""
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 3_600_000_000_000)


@pytest.fixture
def many(store: ProjectSessions, monkeypatch: pytest.MonkeyPatch) -> ProjectSessions:
    """A store of enough sessions, whose index is made."""
    monkeypatch.setattr(overview, "MIN_SESSIONS", COUNT - 5)
    for number in range(COUNT):
        make(store, f"session-{number:03}", created=float(number + 1), turn_count=1)
    make(store, "child", created=2.5, parent_id="session-001")
    make(store, "tagged", created=3.5, tags=("zebra",))
    SessionOverview.of(store.sessions)
    return store


def make(store: ProjectSessions, session_id: str, **fields: object) -> Path:
    folder = store.folder(session_id)
    folder.mkdir(parents=True)
    (folder / TRANSCRIPT).write_bytes(SAID)
    write_record(folder, record(session_id, **fields))
    return folder


def check(store: ProjectSessions) -> None:
    """Require the answer that reading every file gives, twice: the first may mend the index."""
    for _ in range(2):
        files = store.listing()
        found = latest_sessions([store.sessions], MIN_SESSIONS * 2, children=True)
        assert found.sessions == files.sessions
        assert found.count == len(files.sessions)
        assert found.damaged == files.damaged
        own = latest_sessions([store.sessions], MIN_SESSIONS * 2)
        assert list(own.sessions) == store.all()


def reads(store: ProjectSessions, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders whose records one look at the store reads."""
    names: list[str] = []

    def note(folder: Path) -> SessionRecord | None:
        names.append(folder.name)
        return read_record(folder)

    with monkeypatch.context() as patch:
        patch.setattr(overview, "read_record", note)
        SessionOverview.of(store.sessions)
    return names


def test_only_what_changed_is_read(
    many: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reads(many, monkeypatch) == []
    folder = make(many, "new")
    write_record(many.folder("session-007"), record("session-007", name="seven"))
    assert reads(many, monkeypatch) == [folder.name, "session-007"]
    assert reads(many, monkeypatch) == []
    check(many)


def test_the_latest_are_chosen_without_children(many: ProjectSessions) -> None:
    found = latest_sessions([many.sessions], 2)
    assert [each.record.session_id for each in found.sessions] == [
        f"session-{COUNT - 1:03}",
        f"session-{COUNT - 2:03}",
    ]
    assert found.count == COUNT + 1
    tagged = latest_sessions([many.sessions], 2, tag="zebra")
    assert [each.record.session_id for each in tagged.sessions] == ["tagged"]


def test_what_is_gone_before_it_is_read_is_not_shown(
    many: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = SessionOverview.of

    def lose(root: Path) -> SessionOverview:
        found = look(root)
        shutil.rmtree(many.folder(f"session-{COUNT - 1:03}"))
        (many.folder(f"session-{COUNT - 2:03}") / METADATA).write_text("{")
        return found

    monkeypatch.setattr(SessionOverview, "of", lose)
    found = latest_sessions([many.sessions], 1)
    assert [each.record.created for each in found.sessions] == [float(COUNT - 2)]
    assert found.count == COUNT - 1
    assert [folder.name for folder, _ in found.damaged] == [f"session-{COUNT - 2:03}"]


def edit(folder: Path) -> None:
    """Change a record by hand, in place, with its size and its time as they were."""
    file = folder / METADATA
    before = file.stat()
    text = file.read_text()
    with file.open("r+") as stream:
        stream.write(text.replace('"created": 8.0', '"created": 9.5'))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_copy(folder: Path) -> None:
    """Put a copy of a session with the old times in its place, and let it say something else."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    edit(copy)
    shutil.rmtree(folder)
    copy.rename(folder)


def swap(folder: Path) -> None:
    other = folder.with_name("session-008")
    folder.rename(folder.with_name("aside"))
    other.rename(folder)
    folder.with_name("aside").rename(other)


def replace_by_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited": edit,
    "copied": replace_by_copy,
    "swapped": swap,
    "deleted": shutil.rmtree,
    "renamed": lambda folder: folder.rename(folder.with_name("other")),
    "record damaged": lambda folder: (folder / METADATA).write_text("{"),
    "record lost": lambda folder: (folder / METADATA).unlink(),
    "record of a newer version": lambda folder: (folder / METADATA).write_text(
        '{"version": 99}'
    ),
    "transcript lost": lambda folder: (folder / TRANSCRIPT).unlink(),
    "transcript emptied": lambda folder: os.truncate(folder / TRANSCRIPT, 0),
    "transcript short": lambda folder: os.truncate(folder / TRANSCRIPT, 20),
    "in place of a folder": replace_by_file,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_by_anybody_is_seen(
    many: ProjectSessions, change: Callable[[Path], object]
) -> None:
    change(many.folder("session-007"))
    check(many)


def test_a_record_that_changed_just_now_is_read_again(
    many: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = max(
        (folder / METADATA).stat().st_ctime_ns for folder in many.sessions.iterdir()
    )
    monkeypatch.setattr(time, "time_ns", lambda: changed + 1_000_000_000)
    assert "tagged" in reads(many, monkeypatch)
    # a clock that was set back: every file is from the future
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    assert len(reads(many, monkeypatch)) == COUNT + 2
    check(many)


def flip(file: Path) -> None:
    """Change the tag and the order of sessions inside the index, as SQLite does not notice."""
    data = file.read_bytes()
    assert b'["zebra"]' in data
    file.write_bytes(data.replace(b'["zebra"]', b'["zebrb"]'))


def order(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE sessions SET latest = 1e9 WHERE is_child = 0")
    connection.close()


def set_version(file: Path, version: int) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def alter(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE sessions")
        connection.execute("CREATE TABLE sessions (other)")
    connection.close()


def replace_by(file: Path, make: Callable[[Path], object]) -> None:
    file.unlink()
    make(file)


def link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


FAULTS: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda file: os.truncate(file, 0),
    "no database": lambda file: file.write_bytes(b"x" * 5000),
    "cut off": lambda file: os.truncate(file, file.stat().st_size // 2),
    "header alone": lambda file: os.truncate(file, 100),
    "flipped": flip,
    "another order": order,
    "newer": lambda file: set_version(file, 99),
    "no version": lambda file: set_version(file, 0),
    "another table": alter,
    "a folder": lambda file: replace_by(file, Path.mkdir),
    "a pipe": lambda file: replace_by(file, os.mkfifo),
    "a link": link,
    "two names": lambda file: os.link(file, file.with_name("elsewhere")),
    "stale journal": lambda file: file.with_name(f"{file.name}-journal").write_bytes(
        b"x" * 2000
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_faulty_index_changes_no_answer(
    many: ProjectSessions, fault: Callable[[Path], object]
) -> None:
    fault(many.root / INDEX)
    check(many)
    assert many.delete("session-003") == ["session-003"]
    check(many)


@pytest.mark.parametrize("fault", ["no database", "cut off", "another table"])
def test_a_damaged_index_is_made_anew(
    many: ProjectSessions, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAULTS[fault](many.root / INDEX)
    check(many)
    assert reads(many, monkeypatch) == []


def test_an_index_that_another_process_writes_is_done_without(
    many: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.app.store.index._TIMEOUT", 0.0)
    other = sqlite3.connect(many.root / INDEX, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DELETE FROM sessions")
    check(many)
    many.delete("session-003")
    check(many)
    other.execute("ROLLBACK")
    other.close()
    check(many)
    assert "session-003" not in SessionIndex(many.root / INDEX).rows()


def test_a_python_without_sqlite_lists_as_well(
    many: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    check(many)
    many.delete("session-003")
    check(many)


def test_a_folder_that_cannot_be_written_has_no_index(
    many: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    (many.root / INDEX).unlink()

    def refuse(*_: object) -> int:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        SessionOverview.of(many.sessions)
    assert not (many.root / INDEX).exists()


def test_the_index_is_for_this_user_alone(many: ProjectSessions) -> None:
    assert stat.S_IMODE((many.root / INDEX).stat().st_mode) == 0o600


def test_a_small_store_has_no_index(store: ProjectSessions) -> None:
    make(store, "one")
    check(store)
    assert not (store.root / INDEX).exists()
    assert latest_sessions([store.root / "nowhere"], 1).count == 0


def test_a_store_of_some_size_has_an_index(store: ProjectSessions) -> None:
    for number in range(MIN_SESSIONS - 1):
        make(store, f"session-{number:03}")
    check(store)
    assert not (store.root / INDEX).exists()
    make(store, "one more")
    check(store)
    assert (store.root / INDEX).exists()


def test_what_is_deleted_leaves_the_index(many: ProjectSessions) -> None:
    file = many.root / INDEX
    assert b"zebra" in file.read_bytes()
    many.delete("tagged")
    assert b"zebra" not in file.read_bytes()
    check(many)


def test_an_index_of_another_version_is_deleted_with_a_session(
    many: ProjectSessions,
) -> None:
    set_version(many.root / INDEX, 99)
    many.delete("tagged")
    assert not (many.root / INDEX).exists()
    check(many)


KILLED = """
import os, signal, sys
from pathlib import Path
from amplifier.app.store.index import IndexRow, SessionIndex

def rows(count):
    for number in range(5000):
        if number == count:
            os.kill(os.getpid(), signal.SIGKILL)
        yield IndexRow(f"session-{number:03}", "1:1:1", 1e9 + number, 0, 0, "[]" + " " * 400)

SessionIndex(Path(sys.argv[1])).update(rows(int(sys.argv[2])), ["tagged"])
"""


@pytest.mark.process
@pytest.mark.parametrize("count", [0, 1, 100, 4999])
def test_a_writer_that_is_killed_leaves_the_old_rows(
    many: ProjectSessions, count: int
) -> None:
    index = SessionIndex(many.root / INDEX)
    before = index.rows()
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(index.path), str(count)], check=False
    )
    assert run.returncode == -signal.SIGKILL
    assert index.rows() == before
    check(many)


def test_writers_at_the_same_time_leave_rows_of_both(many: ProjectSessions) -> None:
    index = SessionIndex(many.root / INDEX)
    index.path.unlink()
    both = [
        [IndexRow(f"{name}{number}", "1:1:1", 1.0, 0, 0, "[]") for number in range(500)]
        for name in "ab"
    ]
    writers = [threading.Thread(target=index.update, args=(rows, ())) for rows in both]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert set(index.rows()) == {row.name for rows in both for row in rows}
    check(many)


def test_a_whole_listing_is_as_before(many: ProjectSessions) -> None:
    stored = many.session("session-007")
    assert stored is not None
    write_record(stored.folder, attrs.evolve(stored.record, tags=("a", 'b"')))
    (found,) = latest_sessions([many.sessions], 5, tag='b"').sessions
    assert found.record.tags == ("a", 'b"')


def test_bytes_that_a_disk_lost_are_seen_where_they_are_verified(
    many: ProjectSessions,
) -> None:
    file = many.folder("session-007") / METADATA
    index = SessionIndex(many.root / INDEX)
    rows = index.rows()
    file.write_text("{")
    # the disk changes neither the size nor any time of a file
    status = file.stat()
    signature = f"{status.st_ctime_ns}:{status.st_ino}:{status.st_size}"
    index.update([rows["session-007"]._replace(signature=signature)], ())

    assert SessionOverview.of(many.sessions).damaged == ()
    found = SessionOverview.of(many.sessions, verify=True)
    assert [folder.name for folder, _ in found.damaged] == ["session-007"]
    assert len(found.rows) == COUNT + 1
