"""A log is followed while it is written, turned, emptied, and while sessions come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, aclosing
from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from amplifier.app.logs import follower as follower_module
from amplifier.app.logs.follower import FollowedLog, follow
from amplifier.app.logs.library import SessionLogFiles
from amplifier.app.logs.merge import Logs
from amplifier.app.logs.selection import LineFilter
from amplifier_kit.logs.files import rotated_name
from amplifier_kit.logs.records import encode_record
from tests.app.logs.records import Story


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def follower(path: Path, opened: ExitStack) -> FollowedLog:
    log = FollowedLog(path)
    opened.callback(log.close)
    return log


def events(log: FollowedLog) -> list[str]:
    return [
        "damage" if line.record is None else line.record.event
        for line in log.read_new()
    ]


def append(path: Path, *events: str, end: bytes = b"") -> None:
    story = Story()
    with path.open("ab") as file:
        file.write(b"".join(encode_record(story.tell(event)) for event in events) + end)


def turn(path: Path) -> None:
    for number in (3, 2, 1):
        earlier = path if number == 1 else rotated_name(path, number - 1)
        if earlier.exists():
            earlier.replace(rotated_name(path, number))


def test_what_comes_is_read_once(path: Path, opened: ExitStack) -> None:
    log = follower(path, opened)
    assert events(log) == []
    append(path, "a", "b")
    assert events(log) == ["a", "b"]
    assert events(log) == []
    append(path, "c", end=b'{"ts": ')
    assert events(log) == ["c"]
    append(path, end=b"1}\n")
    append(path, "d")
    assert events(log) == ["damage", "d"]


def test_files_that_are_turned_are_read_to_their_end(
    path: Path, opened: ExitStack
) -> None:
    log = follower(path, opened)
    append(path, "a")
    assert events(log) == ["a"]
    append(path, "b")
    turn(path)
    append(path, "c")
    turn(path)
    append(path, "d", end=b"torn")
    turn(path)
    append(path, "e")
    assert events(log) == ["b", "c", "d", "damage", "e"]
    for name in (path, *(rotated_name(path, number) for number in (1, 2, 3))):
        name.unlink()
    assert events(log) == []
    append(path, "f")
    assert events(log) == ["f"]


def test_no_file_is_passed_over_in_the_middle_of_a_turn(
    path: Path, opened: ExitStack
) -> None:
    log = follower(path, opened)
    append(path, "a")
    assert events(log) == ["a"]
    for event in ("b", "c"):
        turn(path)
        append(path, event)
    for number in (2, 1):
        rotated_name(path, number).replace(rotated_name(path, number + 1))
    with Logs.take([path]) as taken:
        assert [record.event for record in taken.select(LineFilter())] == [
            "a",
            "b",
            "c",
        ]

    assert events(log) == ["b", "c"]
    path.replace(rotated_name(path, 1))
    append(path, "d")
    assert events(log) == ["d"]


def test_logs_are_whole_while_they_are_turned(path: Path) -> None:
    story, done = Story(), threading.Event()

    def write() -> None:
        for first in range(0, 12_000, 60):
            with path.open("ab") as file:
                file.write(
                    b"".join(
                        encode_record(story.tell(str(first + number)))
                        for number in range(60)
                    )
                )
            turn(path)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        with Logs.take([path]) as taken:
            reported = [int(record.event) for record in taken.select(LineFilter())]
        assert all(later == earlier + 1 for earlier, later in pairwise(reported))
    writer.join()


def test_a_log_that_was_emptied_begins_anew(path: Path, opened: ExitStack) -> None:
    log = follower(path, opened)
    append(path, "a", "b")
    assert events(log) == ["a", "b"]
    path.write_bytes(b"")
    append(path, "c")
    assert events(log) == ["c"]


def test_a_line_without_end_is_damage(
    path: Path, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "LONGEST_LINE", 1000)
    log = follower(path, opened)
    append(path, end=b"x" * 5000)
    assert events(log) == []
    append(path, end=b"x\n")
    append(path, "a")
    assert events(log) == ["damage", "a"]


def test_following_begins_where_reading_ended(path: Path, opened: ExitStack) -> None:
    append(path, "a", "b", end=b'{"begun": ')
    with Logs.take([path, path.with_name("none.jsonl")]) as logs:
        assert [record.event for record in logs.select(LineFilter(), 1)] == ["b"]
        turn(path)
        append(rotated_name(path, 1), end=b"0}\n")
        append(path, "c")
        followed = logs.followed()
    for log in followed:
        opened.callback(log.close)
    assert [events(log) for log in followed] == [["damage", "c"], []]


async def test_logs_that_come_are_followed_from_their_beginning(tmp_path: Path) -> None:
    logs = [SessionLogFiles(path=tmp_path / "a.jsonl", session_id="a")]
    append(logs[0].path, "first")
    seen = []
    with anyio.fail_after(20):
        async with aclosing(follow(lambda: logs, interval=0.001)) as looks:
            async for lines in looks:
                seen += [line.record.event for line in lines if line.record]
                if len(seen) == 1:
                    logs.append(
                        SessionLogFiles(path=tmp_path / "b.jsonl", session_id="b")
                    )
                    append(logs[1].path, "second")
                    append(logs[0].path, "third")
                if len(seen) == 3:
                    break
    assert seen[0] == "first"
    assert sorted(seen[1:]) == ["second", "third"]
