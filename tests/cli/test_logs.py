"""`amplifier logs`: the lines of sessions at the command line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import attrs
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.logs.follower import follow
from amplifier.app.logs.reader import LogLine
from amplifier.cli._loglines import LogLines
from tests.app.logs.records import Story, write_log
from tests.cli.programs import call


def lines(*arguments: str) -> list[str]:
    return call("logs", *arguments).stdout.splitlines()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of a session in the project of the working directory, with a child and damage."""
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("TZ", "UTC")
    folder = AppDirs.find().state / "sessions"
    story, child = Story("aaa"), Story("aaa-1_kid", "aaa", start=1.5)
    story.tell("prompt:submit", prompt="Hello\nworld \x1b[1m")
    story.tell("tool:pre", tool_name="bash", tool_input={"command": "ls"})
    story.tell(
        "tool:post",
        tool_name="bash",
        duration=0.5,
        result={"success": True, "output": "a.txt"},
    )
    story.tell(
        "provider:error",
        provider="p",
        level="error",
        error={"type": "LLMError", "message": "busy"},
    )
    child.tell("prompt:submit", prompt="Look")
    write_log(folder / "aaa-1_kid" / "events.jsonl", child.records)
    return write_log(folder / "aaa" / "events.jsonl", [*story.records, b"damaged\n"])


def test_the_latest_session_is_shown_a_line_a_record(log: Path) -> None:
    result = call("logs")
    assert result.stdout.splitlines() == [
        "2026-01-01T00:00:01.000+00:00  INFO     prompt:submit          Hello world \\x1b[1m",
        '2026-01-01T00:00:02.000+00:00  INFO     tool:pre               bash {"command": "ls"}',
        "2026-01-01T00:00:03.000+00:00  INFO     tool:post              bash 500 ms: a.txt",
        "2026-01-01T00:00:04.000+00:00  ERROR    provider:error         p: LLMError: busy",
    ]
    assert "1 damaged line was passed over" in result.stderr


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("arguments", "events"),
    [
        (("--event", "tool:*"), ["tool:pre", "tool:post"]),
        (("-e", "tool:pre", "-e", "prompt:*"), ["prompt:submit", "tool:pre"]),
        (("--level", "error"), ["provider:error"]),
        (("--filter", "tool_name=bash", "--filter", "A.TXT"), ["tool:post"]),
        (("--since", "2026-01-01T00:00:02.5Z"), ["tool:post", "provider:error"]),
        (("--since", "1s"), []),
        (("-n", "1"), ["provider:error"]),
        (("-n", "1", "--event", "tool:*"), ["tool:post"]),
        (("--session", "aaa-1"), ["prompt:submit"]),
        (
            ("--session", "aaa"),
            ["prompt:submit", "tool:pre", "tool:post", "provider:error"],
        ),
    ],
    ids=[f"options{number}" for number in range(10)],
)
def test_lines_are_chosen(arguments: tuple[str, ...], events: list[str]) -> None:
    assert [line.split()[2] for line in lines(*arguments)] == events


@pytest.mark.usefixtures("log")
def test_a_family_is_one_log_by_time() -> None:
    shown = [line.split()[2:4] for line in lines("--tree")]
    assert shown == [
        ["aaa", "prompt:submit"],
        ["aaa", "tool:pre"],
        ["aa-1_kid", "prompt:submit"],
        ["aaa", "tool:post"],
        ["aaa", "provider:error"],
    ]
    assert len(lines("-s", "aaa", "-s", "aaa-1_kid", "-s", "aaa")) == 5


def test_records_are_json_that_no_terminal_obeys(log: Path) -> None:
    text = log.read_text().replace("Hello", "Hello\u202e\u0085")
    log.write_text(text)
    shown = lines("--json", "--limit", "9")
    assert [json.loads(line)["event"] for line in shown][:2] == [
        "prompt:submit",
        "tool:pre",
    ]
    assert json.loads(shown[0])["data"]["prompt"].startswith("Hello\u202e\u0085")
    assert shown[0].isascii()


@pytest.mark.usefixtures("log")
def test_statistics_are_tables_or_json() -> None:
    text = call("logs", "--stats").stdout
    assert text.startswith("4 records of 1 turns in 1 sessions (1 error)\n")
    assert re.search(r"^bash +1 +0 +0 +500 ms$", text, re.MULTILINE)
    assert re.search(r"^p +1 +1 +0 +0 +0 +0 ms$", text, re.MULTILINE)
    found = json.loads(call("logs", "--stats", "--json").stdout)
    assert found["tools"]["bash"]["calls"] == 1
    assert found["damaged"] == 1
    assert (
        call("logs", "--stats", "--since", "1s").stdout
        == "0 records of 0 turns in 0 sessions\n"
    )


def test_a_file_is_shown_wherever_it_stands(log: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(log.read_bytes())
    assert len(lines("--file", str(copy))) == 4
    assert "no such file" in call("logs", "--file", "nowhere", expect=1).stderr


def test_hooks_are_counted_with_what_they_decided(tmp_path: Path) -> None:
    story = Story()
    story.tell(
        "hook:decided", module="guard", handler="g", action="deny", duration=0.01
    )
    story.tell(
        "provider:response",
        provider="p",
        usage={"input_tokens": 1, "output_tokens": 2, "cost_usd": "0.5"},
    )
    text = call(
        "logs", "--stats", "--file", str(write_log(tmp_path / "x", story.records))
    ).stdout
    assert "guard  10 ms  1 deny" in text
    assert "0.5" in text


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--session", "zzz"), 1, "no session of this id"),
        (("--since", "then"), 1, "10m"),
        (("--follow", "--stats"), 2, "--stats would never come"),
        (("--level", "loud"), 2, "loud"),
    ],
    ids=["unknown", "no-time", "for-ever", "no-level"],
)
def test_what_cannot_be_is_told(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    assert said in call("logs", *arguments, expect=code).stderr


def test_a_terminal_gets_lines_that_fit_in_colours() -> None:
    record = Story().tell("prompt:submit", prompt="word " * 40, level="warning")
    plain = LogLines(is_terminal=True, width=80, has_sessions=True).line(record)
    assert len(plain) == 80
    assert re.match(
        r"\d\d:\d\d:01\.000  WARNING  s         prompt:submit          word word", plain
    )
    coloured = LogLines(
        is_terminal=True, has_colour=True, width=80, has_sessions=True
    ).line(record)
    assert "\x1b[33m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    odd = attrs.evolve(record, ts="some other \x1b time")
    assert (
        LogLines(is_terminal=True, width=80)
        .line(odd)
        .startswith("some othe...  WARNING")
    )


def test_following_goes_on_until_it_is_interrupted(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = Story("aaa", start=9.0)

    async def interrupted(
        find: object, *, begun: list[object], interval: float = 0.25
    ) -> object:
        write_log(
            log.with_name("more"), [more.tell("late:one"), b"?\n", more.tell("other")]
        )
        with log.open("ab") as file:
            file.write(log.with_name("more").read_bytes())
        async with aclosing(follow(find, begun=begun, interval=0)) as looks:  # type: ignore[arg-type]  # as it is called
            async for found in looks:
                yield found
                raise KeyboardInterrupt

    monkeypatch.setattr("amplifier.app.logs.follower.follow", interrupted)
    result = call("logs", "--follow", "-e", "late:*", "--tree", expect=130)
    assert [line.split()[3] for line in result.stdout.splitlines()] == ["late:one"]
    assert "1 damaged line" in result.stderr


@pytest.mark.usefixtures("log")
def test_with_following_the_last_lines_come_first(
    monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    story = Story("aaa")
    write_log(log, [story.tell(f"e{number}") for number in range(30)])

    async def nothing(
        find: object, *, begun: list[object]
    ) -> AsyncIterator[list[LogLine]]:
        yield []
        if begun:
            raise KeyboardInterrupt

    monkeypatch.setattr("amplifier.app.logs.follower.follow", nothing)
    shown = call("logs", "--follow", expect=130).stdout.splitlines()
    assert [line.split()[2] for line in shown] == [
        f"e{number}" for number in range(20, 30)
    ]


@pytest.mark.process
def test_whoever_stops_reading_is_let_go(log: Path) -> None:
    import subprocess

    write_log(log, [Story("aaa").tell("e", text="x" * 1000) for _ in range(2000)])
    command = f"{sys.executable} -m amplifier logs | head -n 1"
    result = subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == ""
