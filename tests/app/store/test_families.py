"""Sessions stand below those that made them, are forked at any point, and are deleted with what came of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store import stored
from amplifier.app.store.families import grow
from amplifier.app.store.fork import fork_session
from amplifier.app.store.reader import read_history
from amplifier.app.store.store import Cleanup, ProjectSessions
from amplifier.app.store.stored import SessionListing, StoredSession
from amplifier.app.store.writer import write_record
from amplifier_kit.files.documents import read_document
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.history import diagnose as find_problems
from amplifier_sdk.jsontypes import JSONValue
from tests.app.projects import write
from tests.app.store.talks import HELLO, ROME, calling, interrupt, keep, result

# -- trees


def ids(trees: list[object]) -> list[object]:
    return [
        (tree.session.record.session_id, ids(list(tree.branches)))  # type: ignore[attr-defined]  # trees
        for tree in trees
    ]


async def test_sessions_stand_below_those_that_made_them(
    store: ProjectSessions,
) -> None:
    family = [
        ("old", None),
        ("new", None),
        ("kid", "new"),
        ("kid2", "new"),
        ("grandkid", "kid"),
        ("orphan", "gone"),
    ]
    for number, (name, parent) in enumerate(family):
        await keep(store, name, created=float(number + 1), parent_id=parent)
    trees = grow(store.all(children=True))
    assert ids([*trees]) == [
        ("orphan", []),
        ("new", [("kid", [("grandkid", [])]), ("kid2", [])]),
        ("old", []),
    ]
    assert {session.record.session_id for session in trees[1].sessions()} == {
        "new",
        "kid",
        "kid2",
        "grandkid",
    }


async def test_records_that_name_each_other_keep_nobody_waiting(
    store: ProjectSessions,
) -> None:
    for name, parent in [("a", "b"), ("b", "a"), ("self", "self")]:
        await keep(store, name, parent_id=parent)
    trees = grow(store.all(children=True))
    assert sum(len(list(tree.sessions())) for tree in trees) == 3
    assert sorted(store.delete("a")) == ["a", "b"]
    assert store.delete("self") == ["self"]


def test_a_family_may_be_deeper_than_python_calls(dirs: AppDirs) -> None:
    from amplifier.app.store.records import SessionRecord

    sessions = [
        StoredSession(
            folder=Path(f"/{number}"),
            record=SessionRecord(
                session_id=str(number), parent_id=str(number - 1) if number else None
            ),
        )
        for number in range(3000)
    ]
    (tree,) = grow(sessions)
    assert len(list(tree.sessions())) == 3000


# -- forking


async def test_a_fork_goes_on_from_a_turn(store: ProjectSessions) -> None:
    session = await keep(
        store,
        turns=[HELLO, ROME],
        tags=("x",),
        profile="dev",
        usage={"total_tokens": 9},
    )
    write(session.folder / "settings.yaml", "ui: {show_usage: false}\n")
    made = await fork_session(store, session, at_turn=1, name="other way")
    assert read_history(made.folder).messages == HELLO
    assert made.record.name == "other way"
    assert (made.record.profile, made.record.tags, made.record.usage) == (
        "dev",
        ("x",),
        {},
    )
    assert made.record.forked_from == {"session_id": "s1", "turns": 1, "messages": 2}
    assert made.record.turn_count == 1
    assert (made.folder / "settings.yaml").read_text() == "ui: {show_usage: false}\n"
    assert read_history(session.folder).messages == [*HELLO, *ROME]
    whole = await fork_session(store, session)
    assert [len(turn) for turn in read_history(whole.folder).turns] == [2, 3]
    assert store.find("other way").record.session_id == made.record.session_id


async def test_a_fork_within_a_turn_answers_its_calls(store: ProjectSessions) -> None:
    session = await keep(
        store,
        turns=[
            [
                HELLO[0],
                calling("rm", "ls"),
                result(0, "rm", "gone"),
                result(1, "ls", "x"),
            ]
        ],
    )
    made = await fork_session(store, session, at_message=3)
    messages = read_history(made.folder).messages
    assert find_problems(messages) == ()
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert {line.turn for line in read_history(made.folder).lines} == {"t1"}


async def test_a_fork_of_an_open_session_has_its_running_turn(
    store: ProjectSessions,
) -> None:
    session = await keep(store, turns=[HELLO])
    await interrupt(store, session)
    async with store.open(session.record):
        made = await fork_session(store, session)
    assert find_problems(read_history(made.folder).messages) == ()
    assert made.record.turn_count == 2


@pytest.mark.parametrize(
    ("point", "problem"),
    [
        ({"at_turn": 3}, "has 2 turns"),
        ({"at_message": 9}, "has 5 messages"),
        ({"at_turn": 1, "at_message": 1}, "both"),
    ],
    ids=["turn", "message", "both"],
)
async def test_a_fork_needs_a_point_that_is_there(
    store: ProjectSessions, point: dict[str, int], problem: str
) -> None:
    session = await keep(store, turns=[HELLO, ROME])
    with pytest.raises(ConfigError, match=problem):
        await fork_session(
            store,
            session,
            at_turn=point.get("at_turn"),
            at_message=point.get("at_message"),
        )
    assert len(store.all()) == 1


async def test_an_empty_session_can_be_forked(store: ProjectSessions) -> None:
    made = await fork_session(store, await keep(store))
    assert read_history(made.folder).messages == []


# -- deleting


async def test_old_sessions_are_deleted_with_what_came_of_them(
    store: ProjectSessions,
) -> None:
    await keep(store, "old", created=1.0)
    await keep(store, "old-kid", created=2.0, parent_id="old")
    await keep(store, "named", created=1.0, name="mine")
    await keep(store, "young-kid", created=99.0, parent_id="busy")
    busy = await keep(store, "busy", created=1.0)
    await keep(store, "open", created=1.0)
    async with store.open(attrs.evolve(busy.record, session_id="open")):
        done = store.cleanup(50.0)
    assert done.deleted == ("old-kid", "old")
    assert done.open == ("open",)
    assert {found.record.session_id for found in store.all(children=True)} == {
        "named",
        "young-kid",
        "busy",
        "open",
    }
    assert not (store.root / "deleted").exists()


async def test_a_cleanup_reads_each_record_a_few_times(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        await keep(store, f"s{number}", created=1.0)
    read: list[Path] = []

    def reading(path: Path) -> JSONValue:
        read.append(path)
        return read_document(path)

    monkeypatch.setattr(stored, "read_document", reading)
    assert len(store.cleanup(50.0).deleted) == 30
    assert len(read) <= 60


class Meanwhile(ProjectSessions):
    """A store whose sessions go on as soon as they were listed."""

    def listing(self) -> SessionListing:
        found = super().listing()
        self.resume(found.sessions)
        return found

    def families(self, session_ids: Sequence[str]) -> list[list[StoredSession]]:
        found = super().families(session_ids)
        for family in found:
            self.resume(family)
        return found

    def resume(self, sessions: Sequence[StoredSession]) -> None:
        for session in sessions:
            record = attrs.evolve(session.record, prompt="Hello", updated=99.0)
            write_record(session.folder, record)


@pytest.mark.parametrize("how", ["cleanup", "forget_unused"])
async def test_a_session_that_went_on_after_it_was_listed_stays(
    store: ProjectSessions, how: str
) -> None:
    await keep(store, "s1", created=1.0)
    others = Meanwhile(store.root)
    if how == "cleanup":
        assert others.cleanup(50.0) == Cleanup()
    else:
        others.forget_unused("s1")
    assert [found.record.prompt for found in store.all()] == ["Hello"]


async def test_a_deletion_that_did_not_finish_is_finished_later(
    store: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(store, "s1", [HELLO])
    with monkeypatch.context() as patch:
        patch.setattr(
            shutil, "rmtree", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            store.delete("s1")
    assert store.all() == []
    assert list((store.root / "deleted").iterdir())
    store.cleanup(0.0)
    assert not (store.root / "deleted").exists()
