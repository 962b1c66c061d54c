"""The log of a session: what is in it, what is not, and what becomes of the file."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier.testing import TestCoordinator
from amplifier_kit.logs.files import rotated_name
from amplifier_kit.logs.records import LogRecord, read_log
from amplifier_kit.redaction import REDACTION_FAILED
from amplifier_module_hooks_logging import LoggingConfig, mount
from amplifier_sdk import ConfigError, JSONValue, Secret, TextBlock, ToolResult
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.redaction import REDACTOR
from amplifier_sdk.threads import run_blocking

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def session(
    config: JSONObject, session_id: str = "s1"
) -> AsyncIterator[TestCoordinator]:
    coordinator = TestCoordinator(session_id=session_id)
    coordinator.hooks.set_default_fields(session_id=session_id)
    async with coordinator:
        await mount(coordinator, config)
        yield coordinator


def log_of(home: Path) -> Path:
    (found,) = home.rglob("events.jsonl")
    return found


def records(home: Path) -> list[LogRecord]:
    return list(read_log(log_of(home)))


async def logged(
    home: Path, config: JSONObject, event: str = "prompt:complete", **data: object
) -> LogRecord:
    """Emit one event in a session of its own and return its record."""
    async with session(config) as coordinator:
        await coordinator.hooks.emit(event, data)
    return records(home)[-1]


async def test_events_are_numbered_lines_of_json_for_their_user_alone(
    home: Path,
) -> None:
    async with session({}) as coordinator:
        for number in range(3):
            await coordinator.hooks.emit(
                "prompt:submit",
                {"prompt": f"{number}", "turn_id": "t", "iteration": number},
            )

    found = records(home)
    assert [(record.event, record.seq, record.iteration) for record in found] == [
        ("prompt:submit", 1, 0),
        ("prompt:submit", 2, 1),
        ("prompt:submit", 3, 2),
    ]
    assert found[0].session_id == "s1"
    assert found[0].turn_id == "t"
    assert found[0].ts.endswith("+00:00")
    assert log_of(home) == home / "sessions" / "s1" / "events.jsonl"
    assert stat.S_IMODE(log_of(home).stat().st_mode) == 0o600
    assert {
        stat.S_IMODE(folder.stat().st_mode)
        for folder in (home / "sessions", log_of(home).parent)
    } == {0o700}


async def test_no_secret_reaches_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "value-of-the-variable")
    record = await logged(
        home,
        {},
        prompt=f"It is {TOKEN}",
        result=ToolResult(output={"password": "abc", "text": "value-of-the-variable"}),
        secret=Secret("never-to-be-seen"),
        error=ValueError(TOKEN),
        long="x " * 8_190 + TOKEN + " y" * 20_000,
    )

    text = log_of(home).read_text()
    assert not any(
        part in text
        for part in (TOKEN[:10], "abc", "value-of-the-variable", "never-to-be-seen")
    )
    assert record.data["prompt"] == "It is [REDACTED:github-token]"
    assert str(record.data["long"]).endswith("characters)")


@pytest.mark.parametrize("broken", ["raises", "nonsense"])
async def test_a_redactor_that_fails_leaves_nothing_of_the_event(
    home: Path, broken: str
) -> None:
    class Broken:
        def redact_text(self, text: str) -> str:
            raise ValueError(text)

        redact = redact_text

    async with session({}) as coordinator:
        coordinator.register_capability(
            REDACTOR, Broken() if broken == "raises" else object()
        )
        await coordinator.hooks.emit("prompt:complete", {"prompt": "private"})

    assert records(home)[-1].data == {"withheld": REDACTION_FAILED}
    assert "private" not in log_of(home).read_text()


async def test_whatever_an_event_carries_becomes_json(home: Path) -> None:
    loop: list[object] = []
    loop.append(loop)
    record = await logged(
        home,
        {},
        number=float("nan"),
        half="\ud83d!",
        data=b"abc",
        block=TextBlock(text="hi"),
        thing=object(),
        names={3: {"a"}},
        loop=loop,
        messages=({"role": "user"},),
        raw={"a": 1},
    )

    json.loads(log_of(home).read_bytes(), parse_constant=pytest.fail)
    assert record.data["number"] == "nan"
    assert record.data["half"] == "\\ud83d!"
    assert record.data["data"] == "(3 bytes)"
    assert record.data["block"] == {"type": "text", "text": "hi"}
    assert record.data["thing"] == "(builtins.object)"
    assert record.data["names"] == {"3": ["a"]}
    assert "too large or nested too deep" in str(record.data["loop"])
    assert record.data["messages"] == "(left out: 1 message: user)"
    assert record.data["raw"] == "(left out)"


async def test_raw_payloads_are_logged_when_asked_for(home: Path) -> None:
    record = await logged(
        home,
        {"strip_raw": False},
        "llm:request:raw",
        raw={"api_key": "abc", "text": "hi"},
    )

    assert record.data["raw"] == {"api_key": "[REDACTED:secret]", "text": "hi"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ["session:start", "tool:error", "shop:sold", "session:end"]),
        ({"enabled_events": ["tool:*"]}, ["tool:error"]),
        (
            {"exclude_events": ["session:*"]},
            ["content_block:delta", "tool:error", "shop:sold"],
        ),
        ({"auto_discover": False}, ["session:start", "tool:error", "session:end"]),
        (
            {"additional_events": ["shop:bought"]},
            ["session:start", "tool:error", "shop:sold", "shop:bought", "session:end"],
        ),
        ({"log_level": "error"}, ["tool:error"]),
        (
            {"log_level": "debug"},
            ["session:start", "tool:error", "shop:sold", "session:end"],
        ),
    ],
    ids=[
        "defaults",
        "enabled",
        "excluded",
        "not-discovered",
        "additional",
        "errors",
        "debug",
    ],
)
async def test_settings_choose_the_events(
    home: Path, config: JSONObject, expected: list[str]
) -> None:
    async with session(
        {"log_level": "debug", **config} if "exclude_events" in config else config
    ) as coordinator:
        coordinator.register_contributor(
            "observability.events", "shop", lambda: ["shop:sold", 3]
        )
        coordinator.register_contributor(
            "observability.events", "odd", lambda: "shop:sold"
        )
        for event in (
            "session:start",
            "content_block:delta",
            "tool:error",
            "shop:sold",
            "shop:bought",
            "session:end",
        ):
            await coordinator.hooks.emit(event, {})

    assert [record.event for record in records(home)] == expected


async def test_levels_say_what_matters(home: Path) -> None:
    async with session({}) as coordinator:
        await coordinator.hooks.emit("llm:response", {"status": "error"})
        await coordinator.hooks.emit("approval:denied", {})
        await coordinator.hooks.emit("tool:post", {})

    assert [record.level for record in records(home)] == ["error", "warning", "info"]


async def test_a_priority_says_who_hears_first(home: Path) -> None:
    order: list[str] = []
    async with session({"priority": 5}) as coordinator:
        coordinator.hooks.register(
            "prompt:complete", lambda *_: order.append("other"), 10, "other"
        )

        assert coordinator.hooks.list_handlers("prompt:complete")[
            "prompt:complete"
        ] == ["hooks-logging", "other"]
        await coordinator.hooks.emit("prompt:complete", {})
    assert order == ["other"]


async def test_long_texts_and_large_records_are_cut(home: Path) -> None:
    short = await logged(home, {"max_text": 100}, prompt="word " * 10_000, kept="yes")
    assert str(short.data["prompt"]).startswith("word word")
    assert len(str(short.data["prompt"])) < 140

    large = await logged(
        home, {"max_record_bytes": 2_000}, many=["word"] * 2_000, kept="yes"
    )
    assert large.data["kept"] == "yes"
    assert "many" not in large.data
    assert "at most 2000" in str(large.data["left_out"])

    keys = {f"k{number}": "v" for number in range(900)}
    async with session({"max_record_bytes": 1_024}) as coordinator:
        await coordinator.hooks.emit("prompt:complete", keys)
    assert list(records(home)[-1].data) == ["left_out"]


async def test_a_full_file_gives_way_to_a_new_one(home: Path) -> None:
    for keep in (2, 0):
        async with session(
            {"max_file_bytes": 1_024, "keep_files": keep}, f"keep-{keep}"
        ) as coordinator:
            for number in range(40):
                await coordinator.hooks.emit(
                    "prompt:complete", {"prompt": f"{number:0100}"}
                )
        path = home / "sessions" / f"keep-{keep}" / "events.jsonl"

        files = [path, *(rotated_name(path, number) for number in (1, 2, 3))]
        assert [file.exists() for file in files] == [True, keep > 0, keep > 0, False]
        assert all(file.stat().st_size <= 1_024 for file in files if file.exists())
        assert [record.seq for record in read_log(path)][-1] == 40


async def test_a_session_that_goes_on_appends_and_mends_a_torn_line(home: Path) -> None:
    await logged(home, {}, prompt="first")
    path = log_of(home)
    path.write_bytes(path.read_bytes() + b'{"torn')
    os.chmod(path, 0o644)
    await logged(home, {}, prompt="second")

    found = records(home)
    assert [record.data["prompt"] for record in found] == ["first", "second"]
    assert found[0].run != found[1].run
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await logged(home, {"max_file_bytes": 1_024, "keep_files": 1}, prompt="x" * 900)
    await logged(home, {"max_file_bytes": 1_024, "keep_files": 1}, prompt="third")
    assert records(home)[-1].data["prompt"] == "third"


@pytest.mark.parametrize(
    "name",
    [
        "../../etc",
        "..",
        "/abs",
        "a/b",
        "x\x00y",
        "CON",
        "a" * 500,
        "\ud83d",
        "{project}",
        "",
    ],
)
async def test_no_name_leads_out_of_the_folder(
    home: Path, tmp_path: Path, name: str
) -> None:
    template = str(tmp_path / "logs" / "{project}" / "{session_id}.jsonl")
    async with session({}, name) as coordinator:
        await coordinator.hooks.emit("prompt:complete", {})
    async with session({"session_log_template": template}, name) as coordinator:
        coordinator.register_capability("session.working_dir", str(tmp_path))
        await coordinator.hooks.emit("prompt:complete", {})

    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) == 2
    assert (
        len([file for file in written if file.parent.parent == tmp_path / "logs"]) == 1
    )


@pytest.mark.parametrize(
    "template",
    ["logs/all.jsonl", "{session_id}/{user}", "{session_id!r}", "{session_id", "{}"],
)
async def test_a_template_that_cannot_work_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match="session_log_template"):
        async with session({"session_log_template": template}):
            pass


async def test_the_applications_folder_is_used(tmp_path: Path) -> None:
    coordinator = TestCoordinator(session_id="s1")
    coordinator.register_capability("session.dir", tmp_path / "app")
    async with coordinator:
        await mount(coordinator, {})
        await coordinator.hooks.emit("prompt:complete", {})

    assert (tmp_path / "app" / "sessions" / "s1" / "events.jsonl").is_file()


async def test_what_does_not_fit_the_queue_is_counted_and_said(home: Path) -> None:
    entered, released = threading.Event(), threading.Event()

    class Slow:
        def redact_text(self, text: str) -> str:
            return text

        def redact(self, value: JSONValue) -> JSONValue:
            entered.set()
            released.wait(10)
            return value

    said: list[object] = []
    async with session({"queue_size": 2}) as coordinator:
        coordinator.register_capability(REDACTOR, Slow())
        coordinator.hooks.register(
            "user:notification", lambda _, data: said.append(data["message"])
        )
        await coordinator.hooks.emit("prompt:complete", {"length": 0})
        entered.wait(10)
        for number in range(1, 6):
            await coordinator.hooks.emit("prompt:complete", {"length": number})
        released.set()
        await coordinator.hooks.emit("session:end", {})

    found = records(home)
    dropped = [record for record in found if record.event == "log:dropped"]
    assert [
        record.data["length"] for record in found if record.event == "prompt:complete"
    ] == [0, 1, 2]
    assert sum(int(str(record.data["count"])) for record in dropped) >= 3
    assert "events are not in the log" in str(said[0])


async def test_a_log_that_cannot_be_written_is_told_and_stops_nothing(
    home: Path,
) -> None:
    home.mkdir()
    (home / "sessions").write_text("in the way")
    said: list[object] = []
    async with session({}) as coordinator:
        coordinator.hooks.register(
            "user:notification", lambda _, data: said.append(data["message"])
        )
        await coordinator.hooks.emit("prompt:complete", {})
        await coordinator.hooks.emit("session:end", {})
        await coordinator.hooks.emit("session:end", {})

    assert "events are not in the log" in str(said[0])
    assert "NotADirectoryError" in str(said[0])


async def test_a_disk_that_does_not_answer_ends_the_session_in_time(home: Path) -> None:
    entered, released = threading.Event(), threading.Event()

    class Stuck:
        def redact_text(self, text: str) -> str:
            return text

        def redact(self, value: JSONValue) -> JSONValue:
            entered.set()
            released.wait(20)
            return value

    said: list[object] = []
    try:
        with anyio.fail_after(4):
            async with session({"close_timeout": 0.05}) as coordinator:
                coordinator.register_capability(REDACTOR, Stuck())
                coordinator.hooks.register(
                    "user:notification", lambda _, data: said.append(data["message"])
                )
                await coordinator.hooks.emit("prompt:complete", {})
                await run_blocking(lambda: entered.wait(10), name="wait")
                await coordinator.hooks.emit("session:end", {})
    finally:
        released.set()

    (message,) = said
    assert "2 events are not in the log" in str(message)
    assert "the disk did not answer within 0.05 s" in str(message)


def test_an_end_takes_less_than_four_seconds_by_default() -> None:
    assert LoggingConfig().close_timeout < 4


async def test_what_is_no_ordinary_file_is_not_written_to(home: Path) -> None:
    folder = home / "sessions" / "s1"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "events.jsonl")
    said: list[object] = []
    with anyio.fail_after(4):
        async with session({}) as coordinator:
            coordinator.hooks.register(
                "user:notification", lambda _, data: said.append(data["message"])
            )
            await coordinator.hooks.emit("prompt:complete", {})
            await coordinator.hooks.emit("session:end", {})

    assert "2 events are not in the log" in str(said[0])
    assert "not a regular file" in str(said[0])


async def test_a_line_that_the_disk_cut_does_not_damage_the_next_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, left = os.write, [True]

    def cut(handle: int, data: bytes | memoryview) -> int:
        if not bytes(data).startswith(b'{"ts"') or not left:
            return whole(handle, data)
        left.clear()
        whole(handle, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", cut)
    async with session({}) as coordinator:
        await coordinator.hooks.emit("prompt:complete", {"prompt": "one"})
        await coordinator.hooks.emit("session:end", {})
        await coordinator.hooks.emit("prompt:complete", {"prompt": "two"})
        await coordinator.hooks.emit("session:end", {})

    assert "two" in [record.data.get("prompt") for record in records(home)]
