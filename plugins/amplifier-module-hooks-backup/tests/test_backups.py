"""Files as they were: kept before a call changes them, and brought back."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import thread_time
from typing import Final
from zlib import crc32

import pytest

from amplifier.testing import (
    MockDisplaySystem,
    TestCoordinator,
    answer,
    call,
    create_test_session,
)
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_module_hooks_backup import BACKUPS, BackupError, Backups, mount
from amplifier_sdk import ChatResponse, JSONValue, Tool, tool
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.effects import Effect
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import Emission, HookResult

pytestmark = pytest.mark.anyio
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)

NOBODY: Final = 65534
TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


class Doing:
    """A tool that says what it does."""

    def __init__(self, *effects: Effect, read_only: bool | None = None) -> None:
        if effects:
            self.effects = effects
        if read_only is not None:
            self.read_only = read_only


WRITES: Final = Doing("write")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder in which tools work."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


@asynccontextmanager
async def session(
    work: Path,
    config: Mapping[str, JSONValue] | None = None,
    *,
    session_id: str = "s1",
    parent_id: str | None = None,
) -> AsyncIterator[TestCoordinator]:
    coordinator = TestCoordinator(session_id=session_id, parent_id=parent_id)
    coordinator.register_capability("session.working_dir", str(work))
    async with coordinator:
        await mount(coordinator, config or {})
        yield coordinator


def backups_of(coordinator: TestCoordinator) -> Backups:
    backups = coordinator.get_capability(BACKUPS)
    assert isinstance(backups, Backups)
    return backups


async def change(
    coordinator: TestCoordinator,
    arguments: JSONObject,
    tool: object = WRITES,
    name: str = "write_file",
    turn: str = "",
) -> Emission:
    """Let a tool be about to run."""
    if turn:
        await coordinator.hooks.emit("execution:start", {"prompt": "", "turn_id": turn})
    payload = {
        "tool_name": name,
        "tool_input": arguments,
        "tool_obj": tool,
        "tool_call_id": "c1",
    }
    return await coordinator.hooks.emit("tool:pre", payload)


async def stored(coordinator: TestCoordinator) -> list[tuple[str, str]]:
    return [
        (Path(entry.state.path).name, entry.state.kind)
        for entry in await backups_of(coordinator).entries()
    ]


async def command(coordinator: TestCoordinator, name: str, arguments: str = "") -> str:
    """Type a command."""
    (commands,) = await coordinator.collect_contributions("cli.commands")
    assert isinstance(commands, list)
    (found,) = [
        each
        for each in commands
        if isinstance(each, SessionCommand) and each.name == name
    ]
    made = await found.make(arguments)
    assert isinstance(made, CommandAnswer)
    return made.text


# -- keeping


async def test_file_is_kept_before_tool_changes_it_for_its_user_alone(
    work: Path, home: Path
) -> None:
    (work / "a.txt").chmod(0o640)
    async with session(work) as coordinator:
        emission = await change(
            coordinator, {"file_path": "a.txt", "content": "two\n"}, turn="t1"
        )
        (entry,) = await backups_of(coordinator).entries()

    assert emission.action == "continue"
    assert (entry.number, entry.turn, entry.tool, entry.call, entry.session) == (
        1,
        "t1",
        "write_file",
        "c1",
        "s1",
    )
    assert (entry.path, entry.state.kind, entry.state.mode, entry.state.size) == (
        work / "a.txt",
        "file",
        0o640,
        4,
    )
    folder = home / "sessions" / "s1" / "backups"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {
        stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "objects")
    } == {0o700}
    assert (
        folder / "objects" / entry.state.digest[:2] / entry.state.digest
    ).read_text() == "one\n"


@ONE_BACKEND
async def test_before_anything_is_changed_nothing_is_on_the_disk(
    work: Path, home: Path
) -> None:
    async with session(work) as coordinator:
        assert await backups_of(coordinator).entries() == ()
        assert (
            await command(coordinator, "backups")
            == "Nothing was saved in this session."
        )

    assert not home.exists()


@ONE_BACKEND
async def test_each_content_is_kept_once(work: Path, home: Path) -> None:
    (work / "b.txt").write_text("one\n")
    async with session(work) as coordinator:
        for name in ("a.txt", "b.txt", "a.txt"):
            await change(coordinator, {"path": name}, turn="t1")
        await change(coordinator, {"path": "a.txt"}, turn="t2")

        assert await stored(coordinator) == [
            ("a.txt", "file"),
            ("b.txt", "file"),
            ("a.txt", "file"),
        ]
    assert (
        len(
            [
                path
                for path in (home / "sessions" / "s1" / "backups" / "objects").rglob(
                    "*"
                )
                if path.is_file()
            ]
        )
        == 1
    )


@ONE_BACKEND
async def test_what_is_not_there_is_known_as_such(work: Path) -> None:
    async with session(work) as coordinator:
        await change(
            coordinator, {"source": "a.txt", "destination": "deep/new.txt"}, name="move"
        )

        assert await stored(coordinator) == [("a.txt", "file"), ("new.txt", "absent")]


async def test_of_a_directory_all_is_kept(work: Path) -> None:
    (work / "d" / "e").mkdir(parents=True)
    (work / "d" / "e" / "f").write_text("x")
    (work / "d" / "g").symlink_to("e")
    os.mkfifo(work / "d" / "h")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "d"}, name="delete")

        assert await stored(coordinator) == [
            ("d", "directory"),
            ("e", "directory"),
            ("f", "file"),
            ("g", "link"),
            ("h", "left out"),
        ]


@ONE_BACKEND
async def test_of_a_link_the_link_and_what_it_leads_to_are_kept(
    work: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.txt").write_text("other")
    (work / "link").symlink_to("../other.txt")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "link"})

        assert await stored(coordinator) == [("link", "link"), ("other.txt", "file")]


@ONE_BACKEND
@pytest.mark.parametrize(
    ("tool", "name", "expected"),
    [
        (Doing("write"), "x", ["a.txt"]),
        (Doing(), "x", ["a.txt"]),
        (None, "write_file", ["a.txt"]),
        (Doing("exec", "write"), "x", ["a.txt", "b.txt"]),
        (Doing("exec"), "x", ["b.txt"]),
        (None, "bash", ["b.txt"]),
        (Doing("read"), "x", []),
        (Doing("network", "read"), "x", []),
        (Doing(read_only=True), "x", []),
        (Doing("write"), "left_alone", []),
    ],
    ids=[
        "write",
        "unknown",
        "known",
        "exec-write",
        "exec",
        "bash",
        "read",
        "network",
        "read-only",
        "excluded",
    ],
)
async def test_what_is_kept_is_what_a_tool_may_change(
    work: Path, tool: object, name: str, expected: list[str]
) -> None:
    (work / "b.txt").write_text("b")
    async with session(
        work, {"snapshot_paths": ["b.txt"], "exclude_tools": ["left_alone"]}
    ) as coordinator:
        await change(coordinator, {"edits": [{"path": "a.txt"}]}, tool, name)

        assert [name for name, _ in await stored(coordinator)] == expected


@ONE_BACKEND
async def test_names_of_several_files_may_be_nested(
    work: Path,
) -> None:
    async with session(work) as coordinator:
        await change(
            coordinator,
            {"files": [{"path": "a.txt", "content": "two"}, {"file": {"path": "new"}}]},
        )

        assert await stored(coordinator) == [("a.txt", "file"), ("new", "absent")]


@ONE_BACKEND
async def test_of_a_tool_that_says_nothing_no_directory_is_kept(work: Path) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "."}, Doing(), "x")

        assert await stored(coordinator) == []


@ONE_BACKEND
async def test_paths_start_where_they_are_configured_to(
    work: Path, tmp_path: Path
) -> None:
    async with session(tmp_path, {"working_dir": "work"}) as coordinator:
        await change(coordinator, {"path": "a.txt"})

        assert await stored(coordinator) == [("a.txt", "file")]


@ONE_BACKEND
@pytest.mark.parametrize(
    "path",
    ["", "a\0b", "x" * 5000, "~nobody/x", "\ud83d"],
    ids=["empty", "nul", "long", "user", "half"],
)
async def test_a_path_that_no_tool_can_use_keeps_nothing_up(
    work: Path, path: str
) -> None:
    async with session(work) as coordinator:
        emission = await change(coordinator, {"path": path})

    assert emission.action == "continue"


@ONE_BACKEND
async def test_arguments_that_are_no_object_are_left_to_the_host(work: Path) -> None:
    async with session(work) as coordinator:
        emission = await coordinator.hooks.emit(
            "tool:pre", {"tool_name": "write_file", "tool_input": "a.txt"}
        )

    assert emission.action == "continue"


@ONE_BACKEND
async def test_files_with_secret_names_are_skipped_and_reported(
    work: Path, home: Path
) -> None:
    (work / ".env").write_text(f"KEY={TOKEN}")
    async with session(work) as coordinator:
        first = await change(coordinator, {"path": ".env"})
        second = await change(coordinator, {"path": ".env"})

    assert first.action == second.action == "continue"
    assert (
        first.user_message
        == f"No backup of {work}/.env: its name says that it holds secrets (.env)"
    )
    assert second.user_message is None
    assert not any(
        TOKEN in path.read_text() for path in home.rglob("*") if path.is_file()
    )


@ONE_BACKEND
async def test_which_names_say_secret_can_be_chosen(work: Path) -> None:
    async with session(work, {"secret_names": ["a.*"]}) as coordinator:
        await change(coordinator, {"path": "a.txt"})

        assert await stored(coordinator) == [("a.txt", "left out")]


@ONE_BACKEND
async def test_nothing_is_kept_for_what_an_earlier_hook_denies(work: Path) -> None:
    for priority in (2000, -5):
        async with session(
            work, {"priority": priority}, session_id=f"s{priority}"
        ) as coordinator:
            coordinator.hooks.register(
                "tool:pre", lambda _, __: HookResult.deny("no"), 0
            )
            await change(coordinator, {"path": "a.txt"})

            assert len(await stored(coordinator)) == int(priority < 0)


# -- limits and failures


@ONE_BACKEND
@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"max_file_bytes": 3}, "/a.txt' is larger than 3 bytes (max_file_bytes)"),
        ({"max_total_bytes": 3}, "The copies take more than 3 bytes (max_total_bytes)"),
        ({"max_files": 1}, "one call may change more than 1 files (max_files)"),
    ],
    ids=["file", "total", "files"],
)
async def test_what_is_too_much_is_not_changed(
    work: Path, home: Path, config: JSONObject, reason: str
) -> None:
    async with session(work, config) as coordinator:
        emission = await change(coordinator, {"paths": ["a.txt", "b.txt"]})

        assert await stored(coordinator) == []
    assert emission.denied
    assert reason in str(emission.reason)
    assert not [
        path
        for path in (home / "sessions/s1/backups/objects").rglob("*")
        if path.is_file()
    ]


@ONE_BACKEND
async def test_where_a_warning_is_enough_the_change_goes_on(work: Path) -> None:
    async with session(
        work, {"max_file_bytes": 3, "on_failure": "warn"}
    ) as coordinator:
        emission = await change(coordinator, {"path": "a.txt"})

    assert emission.action == "continue"
    assert str(emission.user_message).startswith("No backup: ")


@ONE_BACKEND
async def test_a_place_that_cannot_be_written_denies_the_change(
    work: Path, home: Path
) -> None:
    home.write_text("a file is in the way")
    async with session(work) as coordinator:
        emission = await change(coordinator, {"path": "a.txt"})

    assert emission.denied
    assert "The backups cannot be opened: " in str(emission.reason)


@ONE_BACKEND
async def test_a_log_of_something_else_denies_the_change(
    work: Path, home: Path
) -> None:
    folder = home / "sessions" / "s1" / "backups"
    folder.mkdir(parents=True)
    (folder / "entries.jsonl").write_text("hello\n")
    async with session(work) as coordinator:
        emission = await change(coordinator, {"path": "a.txt"})

    assert emission.denied
    assert (folder / "entries.jsonl").read_text() == "hello\n"


@ONE_BACKEND
async def test_whoever_is_kept_out_touches_no_copy(work: Path, home: Path) -> None:
    async with session(work) as first:
        await change(first, {"path": "a.txt"})
        being_made = home / "sessions/s1/backups/objects/0000.tmp"
        being_made.write_text("half")
        async with session(work) as second:
            emission = await change(second, {"path": "a.txt"})

        assert "It is being written by this process itself" in str(emission.reason)
        assert being_made.exists()


@ONE_BACKEND
async def test_the_oldest_copies_make_room(work: Path) -> None:
    async with session(work, {"max_total_bytes": 1000}) as coordinator:
        for number in range(10):
            (work / "a.txt").write_text(f"{number}" * 200)
            emission = await change(coordinator, {"path": "a.txt"})
            assert not emission.denied
        numbers = [entry.number for entry in await backups_of(coordinator).entries()]

    assert numbers[-1] == 10
    assert 1 not in numbers


@ONE_BACKEND
async def test_a_call_that_takes_too_much_costs_no_copy_that_is_there(
    work: Path,
) -> None:
    async with session(work, {"max_total_bytes": 1000}) as coordinator:
        await change(coordinator, {"path": "a.txt"}, turn="t1")
        (work / "a.txt").write_text("x" * 2000)
        emission = await change(coordinator, {"path": "a.txt"}, turn="t2")

        assert emission.denied
        assert await stored(coordinator) == [("a.txt", "file")]
        await command(coordinator, "restore", "a.txt")
    assert (work / "a.txt").read_text() == "one\n"


@pytest.mark.figures
@ONE_BACKEND
async def test_room_is_made_among_many_copies_at_once(work: Path) -> None:
    (work / "many").mkdir()
    for number in range(3000):
        (work / "many" / f"{number}").write_text(f"{number:04}")
    async with session(
        work, {"max_total_bytes": 12_000, "max_files": 4000}
    ) as coordinator:
        await change(coordinator, {"path": "many"}, turn="t1")
        (work / "a.txt").write_text("one more")
        began = thread_time()
        emission = await change(coordinator, {"path": "a.txt"}, turn="t2")

        assert not emission.denied
        assert thread_time() - began < 0.25  # the event loop's own time
        assert 2000 < len(await stored(coordinator)) < 3000


@ONE_BACKEND
async def test_what_is_too_old_is_forgotten(
    work: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
    monkeypatch.setattr(
        "amplifier_module_hooks_backup.backups.time", lambda: 4_000_000_000.0
    )
    async with session(work) as coordinator:
        assert await stored(coordinator) == []

    assert not [
        path
        for path in (home / "sessions/s1/backups/objects").rglob("*")
        if path.is_file()
    ]


async def test_a_killed_session_loses_nothing_that_was_kept(
    work: Path, home: Path
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
    folder = home / "sessions" / "s1" / "backups"
    with (folder / "entries.jsonl").open("a") as log:
        log.write('{"crc":"0000')
    (folder / "objects" / "0000.tmp").write_text("half")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"}, turn="t2")

        assert [entry.number for entry in await backups_of(coordinator).entries()] == [
            1,
            2,
        ]
    assert not (folder / "objects" / "0000.tmp").exists()


@ONE_BACKEND
@pytest.mark.parametrize(
    "line",
    ['{"kind":"entry","at":1,"data":{}}', '{"kind":"other","at":1,"data":1}'],
    ids=["no-entry", "other"],
)
async def test_records_that_are_no_entries_are_set_aside(
    work: Path, home: Path, line: str
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
    log = home / "sessions" / "s1" / "backups" / "entries.jsonl"
    with log.open("ab") as file:
        body = line[1:].encode()
        file.write(b'{"crc":"%08x",%b\n' % (crc32(body), body))
    async with session(work) as coordinator:
        assert await stored(coordinator) == [("a.txt", "file")]


# -- the way back


async def test_a_turn_is_brought_back_and_that_can_be_taken_back(work: Path) -> None:
    (work / "d").mkdir()
    (work / "d" / "f").write_text("deep")
    (work / "link").symlink_to("a.txt")
    (work / "a.txt").chmod(0o755)
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"}, turn="t1")
        (work / "a.txt").write_text("changed\n")
        (work / "a.txt").chmod(0o600)
        await change(coordinator, {"path": "a.txt"}, turn="t2")
        (work / "a.txt").unlink()
        await change(coordinator, {"source": "d", "destination": "moved"}, name="move")
        (work / "d").rename(work / "moved")
        await change(coordinator, {"path": "link"}, name="delete")
        (work / "link").unlink()

        back = await command(coordinator, "restore", "turn")
        assert (work / "a.txt").read_text() == "changed\n"
        assert (work / "d" / "f").read_text() == "deep"
        assert os.readlink(work / "link") == "a.txt"
        assert not (work / "moved").exists()
        assert f"restored: {work}/d/f" in back

        await command(coordinator, "restore", "turn")
        assert not (work / "a.txt").exists()
        assert not (work / "link").exists()
        assert (work / "moved" / "f").read_text() == "deep"

        await command(coordinator, "restore", "all")
        assert (work / "a.txt").read_text() == "one\n"
        assert stat.S_IMODE((work / "a.txt").stat().st_mode) == 0o755


@ONE_BACKEND
async def test_a_file_is_brought_back_by_its_name_or_its_number(work: Path) -> None:
    async with session(work) as coordinator:
        for content in ("two\n", "three\n"):
            await change(coordinator, {"path": "a.txt"})
            (work / "a.txt").write_text(content)

        await command(coordinator, "restore", "a.txt")
        assert (work / "a.txt").read_text() == "two\n"
        await command(coordinator, "restore", " #1 ")
        assert (work / "a.txt").read_text() == "one\n"


@ONE_BACKEND
async def test_a_restore_costs_none_of_the_copies_that_it_brings_back(
    work: Path,
) -> None:
    async with session(work, {"max_total_bytes": 1000}) as coordinator:
        for name in ("x", "y", "z"):
            (work / name).write_text(name * 300)
            await change(coordinator, {"path": name}, turn="t1")
            (work / name).write_text(name.upper() * 300)
        (work / "z").unlink()
        (work / "z").mkdir()

        assert "/z' is a directory now" in await command(coordinator, "restore", "all")
        assert [(work / name).read_text() for name in ("x", "y")] == [
            "x" * 300,
            "y" * 300,
        ]
        (work / "z").rmdir()
        await command(coordinator, "restore", "all")
        assert (work / "z").read_text() == "z" * 300
        await change(coordinator, {"path": "a.txt"}, turn="t2")
        assert await stored(coordinator) != []
        assert len(await stored(coordinator)) < 8


@ONE_BACKEND
async def test_more_files_come_back_than_one_call_may_change(work: Path) -> None:
    async with session(work, {"max_files": 2}) as coordinator:
        for number in range(5):
            await change(coordinator, {"path": f"new{number}"})
            (work / f"new{number}").write_text("new")

        await command(coordinator, "restore", "all")
    assert os.listdir(work) == ["a.txt"]


@ONE_BACKEND
@pytest.mark.parametrize("left", [b"", b"onE\n"], ids=["power", "bit"])
async def test_a_copy_that_is_damaged_is_no_copy(
    work: Path, home: Path, left: bytes
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"}, turn="t1")
        (entry,) = await backups_of(coordinator).entries()
    copy = (
        home
        / "sessions/s1/backups/objects"
        / entry.state.digest[:2]
        / entry.state.digest
    )
    copy.write_bytes(left)
    (work / "a.txt").write_text("two\n")
    async with session(work) as coordinator:
        assert "its copy is damaged" in await command(coordinator, "restore", "a.txt")

    assert (work / "a.txt").read_text() == "two\n"
    assert sorted(os.listdir(work)) == ["a.txt"]


@ONE_BACKEND
async def test_copy_that_is_cut_is_made_anew_by_next_of_same_content(
    work: Path, home: Path
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"}, turn="t1")
        (entry,) = await backups_of(coordinator).entries()
    (
        home
        / "sessions/s1/backups/objects"
        / entry.state.digest[:2]
        / entry.state.digest
    ).write_bytes(b"")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"}, turn="t2")
        (work / "a.txt").write_text("two\n")
        await command(coordinator, "restore", "#1")

    assert (work / "a.txt").read_text() == "one\n"


@ONE_BACKEND
async def test_expired_backups_do_not_block_restore_on_full_disk(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
    (work / "a.txt").write_text("two\n")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with session(work) as coordinator:
        with monkeypatch.context() as patch:
            patch.setattr(
                "amplifier_module_hooks_backup.backups.time", lambda: 4_000_000_000.0
            )
            patch.setattr(os, "rename", full)
            assert await stored(coordinator) == [("a.txt", "file")]
        await command(coordinator, "restore", "a.txt")
    assert (work / "a.txt").read_text() == "one\n"


@ONE_BACKEND
async def test_what_a_link_led_to_is_brought_back_by_its_name(work: Path) -> None:
    (work / "link").symlink_to("a.txt")
    async with session(work) as coordinator:
        for content in ("two\n", "three\n"):
            await change(coordinator, {"path": "link"}, turn="t1")
            (work / "link").write_text(content)

        assert "-two\n+three" in await command(coordinator, "backups", "link")
        await command(coordinator, "restore", "link")
        assert (work / "a.txt").read_text() == "two\n"
    assert os.readlink(work / "link") == "a.txt"


@ONE_BACKEND
async def test_directory_is_brought_back_by_name_with_what_was_in_it(
    work: Path,
) -> None:
    (work / "d" / "e").mkdir(parents=True)
    (work / "d" / "f").write_text("one")
    (work / "d" / "e" / "g").write_text("deep")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "d/f"}, turn="t1")
        (work / "d" / "f").write_text("two")
        await change(coordinator, {"path": "d/e/g"}, turn="t2")
        await change(coordinator, {"path": "d"}, name="delete", turn="t2")
        shutil.rmtree(work / "d")
        await change(coordinator, {"path": "a.txt"}, turn="t2")
        (work / "a.txt").write_text("three")

        await command(coordinator, "restore", "d")
    assert (work / "d" / "f").read_text() == "two"
    assert (work / "d" / "e" / "g").read_text() == "deep"
    assert (work / "a.txt").read_text() == "three"


@ONE_BACKEND
async def test_a_directory_has_its_permissions_again(work: Path) -> None:
    (work / "d").mkdir()
    (work / "d").chmod(0o3775)
    async with session(work) as coordinator:
        await change(coordinator, {"path": "d"}, name="delete")
        (work / "d").rmdir()
        await command(coordinator, "restore", "turn")

    assert stat.S_IMODE((work / "d").stat().st_mode) == 0o3775


@pytest.fixture
def own() -> Iterator[Path]:
    """A folder of somebody who is no superuser, and whom the tests are."""
    root = Path(tempfile.mkdtemp())
    is_superuser = os.geteuid() == 0
    if is_superuser:
        os.chown(root, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield root
    if is_superuser:
        os.seteuid(0)
    shutil.rmtree(root)


@ONE_BACKEND
@pytest.mark.parametrize("is_gone", [True, False])
async def test_what_was_in_directory_that_nobody_may_write_comes_back(
    own: Path, monkeypatch: pytest.MonkeyPatch, *, is_gone: bool
) -> None:
    monkeypatch.setenv("AMPLIFIER_HOME", str(own / "home"))
    (own / "fixed").mkdir()
    (own / "fixed" / "f").write_text("one")
    (own / "fixed").chmod(0o555)
    async with session(own) as coordinator:
        await change(coordinator, {"path": "fixed"}, name="delete")
        (own / "fixed" / "f").write_text("two")
        if is_gone:
            (own / "fixed").chmod(0o755)
            shutil.rmtree(own / "fixed")
        shown = await command(coordinator, "restore", "turn")

    assert "not done" not in shown
    assert (own / "fixed" / "f").read_text() == "one"
    assert stat.S_IMODE((own / "fixed").stat().st_mode) == 0o555
    (own / "fixed").chmod(0o755)


@ONE_BACKEND
@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("", "Say what: a file"),
        ("b.txt", "Nothing was saved of "),
        ("#7", "Nothing that '#7' means was saved"),
        ("turn", "Nothing that 'turn' means was saved"),
    ],
    ids=["nothing", "file", "number", "turn"],
)
async def test_what_was_not_kept_cannot_be_brought_back(
    work: Path, wanted: str, reason: str
) -> None:
    async with session(work) as coordinator:
        with pytest.raises(CommandError, match=reason):
            await command(coordinator, "restore", wanted)


@ONE_BACKEND
async def test_the_list_and_the_difference_are_shown_without_secrets(
    work: Path,
) -> None:
    text = f"one\n{TOKEN}\n\x1b[31m\n"
    (work / "a.txt").write_text(text)
    async with session(work) as coordinator:
        await change(coordinator, {"paths": ["a.txt", "b.txt"]})
        (work / "a.txt").write_text("two\n")
        listed = await command(coordinator, "backups")
        compared = await command(coordinator, "backups", "a.txt")
        absent = await command(coordinator, "backups", "b.txt")
        with pytest.raises(CommandError):
            await command(coordinator, "backups", "c.txt")

    assert f"before write_file: {work}/a.txt ({len(text)} bytes)" in listed
    assert f"before write_file: {work}/b.txt (not there)" in listed
    assert "\n-one\n-[REDACTED:github-token]\n-\\x1b[31m\n+two" in compared
    assert absent.endswith("was not there")


@ONE_BACKEND
async def test_of_many_entries_the_latest_are_listed(work: Path) -> None:
    async with session(work) as coordinator:
        for number in range(60):
            await change(coordinator, {"path": f"{number}"})

        lines = (await command(coordinator, "backups")).splitlines()
    assert lines[0] == "... and 10 earlier ones"
    assert len(lines) == 51


@ONE_BACKEND
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a\0b", "no lines are compared"),
        (b"x" * 300_000, "no lines are compared"),
        (None, "it had 4 bytes"),
    ],
    ids=["binary", "large", "gone"],
)
async def test_what_cannot_be_compared_by_lines_is_told_in_words(
    work: Path, content: bytes | None, text: str
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
        (work / "a.txt").unlink()
        if content is not None:
            (work / "a.txt").write_bytes(content)

        assert text in await command(coordinator, "backups", "a.txt")


@ONE_BACKEND
async def test_a_copy_that_is_gone_is_said(work: Path, home: Path) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
        for path in (home / "sessions/s1/backups/objects").rglob("*"):
            if path.is_file():
                path.unlink()
        (work / "a.txt").write_text("two\n")

        assert "cannot be brought back: " in await command(
            coordinator, "restore", "a.txt"
        )
        (entry, *_) = await backups_of(coordinator).entries()
        with pytest.raises(BackupError, match="gone"):
            await backups_of(coordinator).difference(entry)
    assert (work / "a.txt").read_text() == "two\n"


@ONE_BACKEND
async def test_names_that_are_no_text_are_kept_and_brought_back(work: Path) -> None:
    odd = os.fsencode(work) + b"/d/\xff\n\x1b"
    (work / "d").mkdir()
    Path(os.fsdecode(odd)).write_text("odd")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "d"}, name="delete")
        Path(os.fsdecode(odd)).unlink()
        (work / "d").rmdir()
        shown = await command(coordinator, "restore", "turn")

    assert Path(os.fsdecode(odd)).read_text() == "odd"
    assert "\x1b" not in shown


@ONE_BACKEND
async def test_no_link_is_followed_on_the_way_back(work: Path, tmp_path: Path) -> None:
    (work / "d").mkdir()
    (work / "d" / "f").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with session(work) as coordinator:
        await change(coordinator, {"path": "d/f"})
        (work / "d" / "f").unlink()
        (work / "d").rmdir()
        (work / "d").symlink_to(elsewhere)
        assert "/d/f' cannot be brought back: " in await command(
            coordinator, "restore", "all"
        )

    assert list(elsewhere.iterdir()) == []


@ONE_BACKEND
async def test_link_in_place_of_file_replaced_and_not_written_through(
    work: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("other")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
        (work / "a.txt").unlink()
        (work / "a.txt").symlink_to(other)
        await command(coordinator, "restore", "a.txt")

    assert not (work / "a.txt").is_symlink()
    assert (work / "a.txt").read_text() == "one\n"
    assert other.read_text() == "other"


@ONE_BACKEND
@pytest.mark.parametrize("kind", ["file", "link"])
async def test_a_directory_in_the_place_of_what_was_kept_stays(
    work: Path, kind: str
) -> None:
    if kind == "link":
        (work / "a.txt").unlink()
        (work / "a.txt").symlink_to("nowhere")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
        (work / "a.txt").unlink()
        (work / "a.txt").mkdir()

        assert "is a directory now" in await command(coordinator, "restore", "a.txt")
    assert (work / "a.txt").is_dir()


@ONE_BACKEND
async def test_what_is_there_now_and_is_not_copied_is_not_lost_either(
    work: Path,
) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "new"})
        (work / "new").mkdir()
        (work / "new" / ".env").write_text("secret")
        await change(coordinator, {"path": "new/.env"})

        shown = await command(coordinator, "restore", "all")
    assert (work / "new" / ".env").read_text() == "secret"
    assert "stays as it is, since it is not copied" in shown


@ONE_BACKEND
async def test_what_was_not_copied_cannot_be_brought_back(work: Path) -> None:
    (work / ".env").write_text("secret")
    async with session(work) as coordinator:
        await change(coordinator, {"path": ".env"})
        (work / ".env").unlink()

        assert "was not copied: its name says that it holds secrets" in await command(
            coordinator, "restore", ".env"
        )


@ONE_BACKEND
async def test_everything_is_as_it_was_whatever_took_whose_place(work: Path) -> None:
    (work / "d").mkdir()
    (work / "d" / "f").write_text("deep")
    async with session(work) as coordinator:
        await change(coordinator, {"path": "d/f"})
        await change(coordinator, {"source": "d", "destination": "e"}, name="move")
        (work / "d").rename(work / "e")
        await change(coordinator, {"path": "d"})
        (work / "d").write_text("a file now")
        await change(coordinator, {"path": "a.txt"}, name="delete")
        (work / "a.txt").unlink()
        await change(coordinator, {"path": "a.txt/in"})
        (work / "a.txt").mkdir()
        (work / "a.txt" / "in").write_text("x")
        await change(coordinator, {"path": "e"}, name="delete")

        shown = await command(coordinator, "restore", "all")
        # a file has taken the place of the directory
        assert "/d/f' cannot be brought back: " in shown
        assert "/a.txt' is a directory now" in shown
        (work / "d").unlink()
        (work / "a.txt" / "in").unlink()
        (work / "a.txt").rmdir()
        await command(coordinator, "restore", "all")

    assert (work / "d" / "f").read_text() == "deep"
    assert (work / "a.txt").read_text() == "one\n"
    assert sorted(os.listdir(work)) == ["a.txt", "d"]


@ONE_BACKEND
async def test_what_is_as_it_was_stays_so(work: Path) -> None:
    (work / "d").mkdir()
    (work / "link").symlink_to("a.txt")
    async with session(work) as coordinator:
        await change(coordinator, {"paths": ["a.txt", "d", "link", "new", "no/where"]})
        (work / "link").unlink()

        shown = await command(coordinator, "restore", "all")
    assert shown.count("restored: ") == 5
    assert sorted(os.listdir(work)) == ["a.txt", "d", "link"]


@ONE_BACKEND
async def test_a_file_in_the_place_of_a_directory_is_told(work: Path) -> None:
    (work / "d").mkdir()
    async with session(work) as coordinator:
        await change(coordinator, {"path": "d"}, name="delete")
        (work / "d").rmdir()
        (work / "d").write_text("a file")

        assert "/d' cannot be brought back: " in await command(
            coordinator, "restore", "d"
        )
    assert (work / "d").read_text() == "a file"


@ONE_BACKEND
async def test_directories_deep_in_each_other_are_not_walked_for_ever(
    work: Path,
) -> None:
    deep = work.joinpath("top", *["d"] * 70)
    deep.mkdir(parents=True)
    async with session(work) as coordinator:
        emission = await change(coordinator, {"path": "top"}, name="delete")

    assert emission.denied
    assert "more than 64 directories in each other" in str(emission.reason)


@ONE_BACKEND
async def test_a_disk_that_is_full_denies_the_change(work: Path, home: Path) -> None:
    async with session(work) as coordinator:
        await change(coordinator, {"path": "a.txt"})
        objects = home / "sessions" / "s1" / "backups" / "objects"
        objects.rename(objects.with_name("gone"))
        (work / "a.txt").write_text("two\n")
        emission = await change(coordinator, {"path": "a.txt"})

    assert emission.denied
    assert "cannot be copied: " in str(emission.reason)


@ONE_BACKEND
async def test_what_is_now_too_large_to_be_kept_is_not_changed(work: Path) -> None:
    async with session(work, {"max_file_bytes": 10}) as coordinator:
        await change(coordinator, {"path": "a.txt"})
        (work / "a.txt").write_text("x" * 11)
        with pytest.raises(CommandError, match="larger than 10 bytes"):
            await command(coordinator, "restore", "a.txt")

    assert (work / "a.txt").read_text() == "x" * 11


# -- sessions


def calling(*calls: ToolCall) -> ChatResponse:
    blocks = [
        ToolCallBlock(id=each.id, name=each.name, input=each.arguments)
        for each in calls
    ]
    return ChatResponse(content=blocks, tool_calls=calls, finish_reason="tool_calls")


async def test_a_child_keeps_with_its_parent_and_in_its_parents_turn(
    work: Path, home: Path
) -> None:
    async with session(work) as parent:
        await parent.hooks.emit("execution:start", {"prompt": "", "turn_id": "t1"})
        async with session(work, session_id="s1-x_helper", parent_id="s1") as child:
            await child.hooks.emit("execution:start", {"prompt": "", "turn_id": "t9"})
            await change(child, {"path": "a.txt"})
        (entry,) = await backups_of(parent).entries()

    assert (entry.session, entry.turn) == ("s1-x_helper", "t1")
    assert not (home / "sessions" / "s1-x_helper").exists()


async def test_last_turn_is_undone_even_without_reported_start(
    work: Path,
) -> None:
    @tool(effects=("write",))
    def write_file(file_path: str, content: str) -> str:
        """Write."""
        (work / file_path).write_text(content)
        return "written"

    class Loop:
        async def execute(
            self,
            prompt: str,
            context: object,
            providers: object,
            tools: Mapping[str, Tool],
            hooks: object,
        ) -> str:
            await tools["write_file"].execute({"file_path": prompt, "content": "new"})
            return "Done."

    agent = create_test_session(
        answer("unused"), tools=[write_file], hooks=[mount], orchestrator=Loop()
    )
    agent.coordinator.register_capability("session.working_dir", str(work))
    async with agent:
        for name in ("a.txt", "b.txt"):
            await agent.execute(name)
        (commands,) = await agent.coordinator.collect_contributions("cli.commands")
        assert isinstance(commands, list)
        (restore,) = [each for each in commands if each.name == "restore"]
        await restore.make("turn")

    assert (work / "a.txt").read_text() == "new"
    assert not (work / "b.txt").exists()


async def test_an_agents_turn_is_undone_in_one_word(work: Path, home: Path) -> None:
    @tool(effects=("write",))
    def write_file(file_path: str, content: str) -> str:
        """Write."""
        (work / file_path).write_text(content)
        return "written"

    display = MockDisplaySystem()
    agent = create_test_session(
        calling(
            call("write_file", {"file_path": "a.txt", "content": "two\n"}),
            call("write_file", {"file_path": ".env", "content": "x"}, id="2"),
        ),
        answer("Done."),
        tools=[write_file],
        hooks=[mount],
        display_system=display,
    )
    agent.coordinator.register_capability("session.working_dir", str(work))
    agent.coordinator.register_capability("session.dir", home / "app")
    async with agent:
        await agent.execute("Change it.")
        backups = agent.coordinator.get_capability(BACKUPS)
        assert isinstance(backups, Backups)
        restored = await backups.restore(await backups.entries())

    assert restored.paths == (f"{work}/a.txt",)
    assert len(restored.problems) == 1  # the new .env is not copied, and so not removed
    assert (work / "a.txt").read_text() == "one\n"
    assert (
        home / "app" / "sessions" / "test-session" / "backups" / "entries.jsonl"
    ).exists()
