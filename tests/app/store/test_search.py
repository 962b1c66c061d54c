"""A search among all sessions of a store finds what a search of each of them finds, and decodes less."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier.app.store import overview, search
from amplifier.app.store.index import INDEX
from amplifier.app.store.overview import SessionOverview
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.search import SearchResult, search_folders, search_sessions
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.writer import METADATA, TRANSCRIPT, write_record
from tests.app.store.talks import HELLO, interrupt, keep, record

SAID = ("Rome is warm.", "Straße, 273 \u212aelvin", 'A "quoted"\nword', "12 1e-05")
IDS = ("s1", "s1-child", "Übung", "ABC")
NAMES = (None, "Holiday", "Größe", 'the "zebra"')
WORDS = (
    *("", "rome", "STRASSE", "größe", "kelvin", '"quoted"', "word", "zebra", "12"),
    *("s1", "übung", "abc", "holiday", "program ended", "null", "nowhere"),
    # in keys, in headers, and where the person worked
    *("prompt", "role", "amplifier", "working"),
)


@pytest.fixture(autouse=True)
def indexed() -> Iterator[None]:
    """Make an index for any session, and look at every file as if it had been written an hour ago."""
    clock = time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: clock() + 3_600_000_000_000)
        patch.setattr(overview, "MIN_SESSIONS", 1)
        yield


@cache
def files(said: str, *, is_interrupted: bool = False) -> dict[str, bytes]:
    """Return the files of a session in which something was said."""

    async def make(root: Path) -> Path:
        store = ProjectSessions(root)
        turn = [{**HELLO[0], "content": said}] if said else []
        session = await keep(store, "made", [turn] if said else [])
        if is_interrupted:
            await interrupt(store, session)
        return session.folder

    with TemporaryDirectory() as root:
        folder = anyio.run(make, Path(root))
        return {file.name: file.read_bytes() for file in folder.glob("*.jsonl")}


class Project:
    """A project whose sessions anybody changes."""

    def __init__(self, root: Path) -> None:
        self.store = ProjectSessions(root)
        self.changes = 0

    def make(
        self, session_id: str, name: str | None, said: str, *, is_interrupted: bool
    ) -> None:
        folder = self.store.folder(session_id)
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in files(said, is_interrupted=is_interrupted).items():
            (folder / file).write_bytes(data)
        self.write(session_id, name, turn_count=1 if said else 0)

    def write(self, session_id: str, name: str | None, **fields: object) -> None:
        # Each state of a record has a size of its own: the times of files are too coarse
        # to tell two states that are as near as these.
        self.changes += 1
        made = record(
            session_id,
            name=name,
            tags=("zebra",) if self.changes % 3 == 0 else (),
            prompt=SAID[self.changes % len(SAID)],
            working_dir=f"/working/{'x' * self.changes}",
            created=float(self.changes % 4),
            parent_id="s1" if session_id == "s1-child" else None,
            **fields,
        )
        write_record(self.store.folder(session_id), made)

    def change(self, session_id: str, how: str) -> None:
        with suppress(FileNotFoundError):
            CHANGES[how](self, session_id)

    def move(self) -> None:
        goal = self.store.root.with_name(f"{self.store.root.name}-moved")
        self.store.root.rename(goal)
        self.store = ProjectSessions(goal)

    def file(self, session_id: str, name: str) -> Path:
        return self.store.folder(session_id) / name

    @property
    def index(self) -> Path:
        return self.store.root / INDEX


CHANGES: dict[str, Callable[[Project, str], object]] = {
    "renamed": lambda project, name: project.write(name, "Holiday", turn_count=1),
    "deleted": lambda project, name: project.store.delete(name),
    "removed": lambda project, name: shutil.rmtree(project.store.folder(name)),
    "moved": lambda project, _: project.move(),
    "transcript lost": lambda project, name: project.file(name, TRANSCRIPT).unlink(),
    "transcript short": lambda project, name: os.truncate(
        project.file(name, TRANSCRIPT), 20
    ),
    "transcript is none": lambda project, name: project.file(
        name, TRANSCRIPT
    ).write_bytes(b"shopping list\n" * 30),
    "record damaged": lambda project, name: project.file(name, METADATA).write_bytes(
        b"{" * (99 + project.changes)
    ),
    "record lost": lambda project, name: project.file(name, METADATA).unlink(),
    "index lost": lambda project, _: project.index.unlink(),
    "index cut off": lambda project, _: os.truncate(
        project.index, project.index.stat().st_size // 2
    ),
    "index damaged": lambda project, _: project.index.write_bytes(b"x" * 5000),
}
STEPS = st.one_of(
    st.tuples(
        st.just("make"),
        st.sampled_from(IDS),
        st.sampled_from(NAMES),
        st.sampled_from(("", *SAID)),
        st.booleans(),
    ),
    st.tuples(st.just("change"), st.sampled_from(IDS), st.sampled_from([*CHANGES])),
)


def scan(roots: list[Path], text: str, limit: int, max_bytes: int) -> SearchResult:
    """Search every session that can be read."""
    stores = [ProjectSessions(root.parent) for root in roots]
    sessions = [each for store in stores for each in store.all(children=True)]
    sessions.sort(key=lambda session: session.record.latest, reverse=True)
    return search_sessions(sessions, text, limit=limit, max_bytes=max_bytes)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    history=st.lists(
        st.tuples(
            st.integers(0, 1),
            STEPS,
            st.sampled_from(WORDS),
            st.sampled_from((1, 20)),
            st.sampled_from((700, 10**9)),
        ),
        min_size=3,
        max_size=14,
    )
)
def test_a_search_finds_what_a_scan_finds(
    history: list[tuple[int, tuple[object, ...], str, int, int]],
) -> None:
    with TemporaryDirectory() as home:
        projects = [Project(Path(home, name)) for name in ("one", "two")]
        for number, step, text, limit, max_bytes in history:
            project = projects[number]
            match step:
                case ["make", str(session_id), str() | None as name, str(said), cut]:
                    project.make(session_id, name, said, is_interrupted=bool(cut))
                case [_, str(session_id), str(how)]:
                    project.change(session_id, how)
                case _:
                    raise AssertionError(step)
            roots = [each.store.sessions for each in projects]
            found = search_folders(roots, text, limit=limit, max_bytes=max_bytes)
            assert found == scan(roots, text, limit, max_bytes)


@pytest.mark.parametrize("text", WORDS)
def test_every_word_is_found_as_by_a_scan(store: ProjectSessions, text: str) -> None:
    project = Project(store.root)
    for session_id, name, said in zip(IDS, NAMES, SAID, strict=True):
        project.make(session_id, name, said, is_interrupted=False)
    project.make("s2", None, "", is_interrupted=True)
    for max_bytes in (0, 700, 10**9):
        found = search_folders([store.sessions], text, limit=9, max_bytes=max_bytes)
        assert found == scan([store.sessions], text, 9, max_bytes)


def test_only_what_may_hold_the_text_is_decoded(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(store.root)
    for number in range(20):
        project.make(f"s{number}", None, SAID[0], is_interrupted=False)
    project.make("s7", "A yak", SAID[0], is_interrupted=False)
    SessionOverview.of(store.sessions)
    read: list[str] = []

    def note(folder: Path) -> SessionRecord | None:
        read.append(folder.name)
        return record(folder.name, name="A yak")

    monkeypatch.setattr(search, "read_record", note)
    monkeypatch.setattr(search, "read_history", lambda _: pytest.fail("decoded"))
    assert len(search_folders([store.sessions], "yak").hits) == 1
    # a word of the folder where the person worked, in every record
    assert search_folders([store.sessions], "working").hits == ()
    assert read == ["s7"]


def test_what_is_gone_before_it_is_read_is_not_found(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(store.root)
    for session_id in ("s1", "s2", "s3"):
        project.make(session_id, "A yak", SAID[0], is_interrupted=False)
    look = SessionOverview.of

    def lose(root: Path, **options: bool) -> SessionOverview:
        found = look(root, **options)
        shutil.rmtree(store.folder("s1"))
        (store.folder("s2") / METADATA).write_text("{")
        return found

    monkeypatch.setattr(SessionOverview, "of", lose)
    (hit,) = search_folders([store.sessions], "yak").hits
    assert hit.session.record.session_id == "s3"


def test_a_pipe_in_place_of_a_transcript_is_not_waited_for(
    store: ProjectSessions,
) -> None:
    project = Project(store.root)
    project.make("s1", "A yak", SAID[0], is_interrupted=False)
    transcript = store.folder("s1") / TRANSCRIPT
    transcript.unlink()
    os.mkfifo(transcript)
    assert search_folders([store.sessions], "yak") == SearchResult()


def test_sessions_that_stay_are_found_while_others_come_and_go(
    store: ProjectSessions,
) -> None:
    project = Project(store.root)
    for number in range(5):
        project.make(f"s{number}", "A yak", SAID[0], is_interrupted=False)
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            project.make("guest", "A yak", SAID[1], is_interrupted=False)
            SessionOverview.of(store.sessions)
            store.delete("guest")

    guest = threading.Thread(target=come_and_go)
    guest.start()
    try:
        for _ in range(100):
            hits = search_folders([store.sessions], "yak").hits
            ids = {hit.session.record.session_id for hit in hits}
            assert ids - {"guest"} == {f"s{number}" for number in range(5)}
    finally:
        is_over.set()
        guest.join()
    assert search_folders([store.sessions], "yak") == scan(
        [store.sessions], "yak", 20, 10**9
    )
