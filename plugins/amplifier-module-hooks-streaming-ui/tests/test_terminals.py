"""Terminals, pipes, and streams that are slow, gone, or of another encoding."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import termios
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from io import BytesIO, StringIO, TextIOWrapper
from typing import Final, TypeAlias

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier.testing import TestCoordinator
from amplifier_kit.terminal import columns_of
from amplifier_module_hooks_streaming_ui import mount
from amplifier_sdk import Coordinator
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult

Say: TypeAlias = Callable[[Coordinator, str], Awaitable[None]]
ShownOn = Callable[..., AbstractAsyncContextManager[TestCoordinator]]  # type: ignore[explicit-any]  # by name
OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)
ANY_TEXT: Final = st.text(st.characters(exclude_categories=[]), max_size=60)


class Held(StringIO):
    """Takes nothing until it is let go; `was_asked` tells when something came, `writes` counts."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.was_asked = threading.Event()
        self.writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        self.was_asked.set()
        self.free.wait(20)
        return super().write(text)


class Gone(StringIO):
    """Nobody reads any more."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        raise BrokenPipeError


async def everything(
    stream: StringIO, text: str, config: JSONObject, shown_on: ShownOn, say: Say
) -> None:
    """Let a text come in by every way there is."""
    async with shown_on(stream, config) as coordinator:
        emit = coordinator.hooks.emit
        await say(coordinator, text)
        await emit(
            "content_block:end",
            {"block": {"type": "thinking", "thinking": text}, "block_index": 1},
        )
        await emit("tool:pre", {"tool_name": text, "tool_input": {text: [text]}})
        await emit("tool:progress", {"tool_name": text, "message": text})
        await emit("tool:output", {"tool_name": text, "text": text})
        result = ToolResult(output=text)
        await emit(
            "tool:post", {"tool_name": text, "result": result, "tool_result": result}
        )
        await emit("tool:error", {"tool_name": text, "error": {"message": text}})
        await emit(
            "user:notification", {"message": text, "source": text, "level": text}
        )
        await emit("todo:updated", {"todos": [{"content": text, "status": text}]})
        await emit(
            "provider:error",
            {"provider": text, "error": {"type": text, "message": text}},
        )


@settings(max_examples=40)
@given(ANY_TEXT)
def test_nothing_that_a_terminal_obeys_is_written(
    shown_on: ShownOn, say: Say, text: str
) -> None:
    stream = StringIO()
    config: JSONObject = {"show_text": False, "width": 40}
    anyio.run(everything, stream, text, config, shown_on, say)

    assert OBEYED.search(stream.getvalue()) is None
    assert all(columns_of(line) < 40 for line in stream.getvalue().split("\n"))


@pytest.mark.anyio
async def test_running_text_keeps_lines_and_loses_what_terminal_obeys(
    shown_on: ShownOn, say: Say
) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        await say(coordinator, "a\x1b]0;title\x07b\tc\r\n\n")
        await say(coordinator, "d\u202ee")

    assert stream.getvalue() == "a\\x1b]0;title\\x07b\tc\\x0d\n\nd\\u202ee\n"


@ONE_BACKEND
@pytest.mark.parametrize(
    ("environment", "config", "is_coloured"),
    [
        ({"TERM": "xterm"}, {}, True),
        ({"TERM": "dumb"}, {}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, {}, False),
        ({"TERM": "xterm"}, {"colour": "never"}, False),
        ({"TERM": "dumb"}, {"colour": "always"}, True),
    ],
    ids=["terminal", "dumb", "no-color", "never", "always"],
)
@pytest.mark.anyio
async def test_colours_are_for_terminals_that_want_them(
    environment: dict[str, str],
    config: JSONObject,
    is_coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    shown_on: ShownOn,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ours, theirs = os.openpty()
    with open(theirs, "w", encoding="utf-8", buffering=1) as terminal:
        async with shown_on(terminal, config) as coordinator:
            await coordinator.hooks.emit(
                "tool:pre", {"tool_name": "grep", "tool_input": {}}
            )
        shown = os.read(ours, 4096)
    os.close(ours)

    assert shown == (
        b"\x1b[1mtool grep\x1b[0m\r\n" if is_coloured else b"tool grep\r\n"
    )


@ONE_BACKEND
@pytest.mark.anyio
async def test_lines_are_as_wide_as_the_terminal(shown_on: ShownOn) -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    with open(theirs, "w", encoding="utf-8") as terminal:
        async with shown_on(terminal, {"colour": "never"}) as coordinator:
            await coordinator.hooks.emit("user:notification", {"message": "漢字" * 40})
        shown = os.read(ours, 4096).decode()
    os.close(ours)

    assert 27 <= columns_of(shown.strip()) <= 29


@pytest.mark.anyio
async def test_without_stream_of_application_standard_error_is_used(
    capsys: pytest.CaptureFixture[str], say: Say
) -> None:
    async with TestCoordinator() as coordinator:
        await mount(coordinator, {})
        await say(coordinator, "Hello.")

    assert capsys.readouterr() == ("", "Hello.\n")


@ONE_BACKEND
@pytest.mark.anyio
async def test_what_an_encoding_lacks_is_written_as_escapes(
    shown_on: ShownOn, say: Say
) -> None:
    inner = BytesIO()
    stream = TextIOWrapper(inner, encoding="ascii")
    async with shown_on(stream) as coordinator:
        await say(coordinator, "naïve 漢")

    assert inner.getvalue() == b"na\\xefve \\u6f22\n"


@pytest.mark.anyio
async def test_a_slow_terminal_holds_nothing_up_and_gets_everything(
    shown_on: ShownOn, say: Say
) -> None:
    stream = Held()
    words = [f"{number} " for number in range(1000)]
    async with shown_on(stream) as coordinator:
        with anyio.fail_after(10):
            for word in words:
                await say(coordinator, word)
        stream.free.set()

    assert stream.getvalue() == "".join(words) + "\n"
    assert stream.writes < 100  # what waited was joined


@pytest.mark.anyio
async def test_a_turn_waits_for_a_terminal_that_takes_something(
    shown_on: ShownOn, say: Say
) -> None:
    stream = Held()
    words = [f"{number} " for number in range(500)]

    async def read() -> None:
        await anyio.to_thread.run_sync(stream.was_asked.wait, 10)
        stream.free.set()

    async with (
        anyio.create_task_group() as group,
        shown_on(stream, {"max_waiting": 50, "write_timeout": 10.0}) as coordinator,
    ):
        group.start_soon(read)
        for word in words:
            await say(coordinator, word)

    assert stream.getvalue() == "".join(words) + "\n"


@pytest.mark.anyio
async def test_what_stuck_terminal_does_not_take_counted_and_left_out(
    shown_on: ShownOn, say: Say
) -> None:
    stream = Held()
    async with shown_on(
        stream, {"max_waiting": 100, "write_timeout": 0.05}
    ) as coordinator:
        with anyio.fail_after(10):
            for _ in range(100):
                await say(coordinator, "some text ")
            await coordinator.hooks.emit(
                "content_block:end", {"block": {"type": "text"}, "block_index": 0}
            )
        stream.free.set()
        assert stream.was_asked.is_set()

    counted = re.search(
        r"\[([\d,]+) characters are left out: the terminal took none\]",
        stream.getvalue(),
    )
    assert counted is not None
    assert (
        stream.getvalue().count("some text ") * 10 + int(counted[1].replace(",", ""))
        == 1000
    )


@pytest.mark.anyio
async def test_a_turn_goes_on_when_nobody_looks_any_more(
    shown_on: ShownOn, say: Say
) -> None:
    stream = Gone()
    async with shown_on(stream) as coordinator:
        for _ in range(3):
            await say(coordinator, "Hello.\n")
            await coordinator.hooks.emit(
                "execution:end", {"response": "", "status": "completed"}
            )

    assert stream.writes == 1


@pytest.mark.anyio
async def test_two_sessions_on_one_stream_keep_to_their_lines(
    shown_on: ShownOn, say: Say
) -> None:
    stream = StringIO()
    async with (
        shown_on(stream, session_id="a") as one,
        shown_on(stream, session_id="b") as other,
    ):
        await say(one, "I am one ")
        await say(other, "I am another ")
        await say(one, "still\n")

    assert stream.getvalue().splitlines() == ["I am one ", "I am another ", "still"]


@ONE_BACKEND
@pytest.mark.anyio
async def test_a_huge_result_is_shown_in_its_first_lines(shown_on: ShownOn) -> None:
    stream = StringIO()
    async with shown_on(stream, {"show_tool_lines": 1}) as coordinator:
        result = ToolResult(output="x" * 50_000_000)
        await coordinator.hooks.emit(
            "tool:post", {"tool_name": "t", "result": result, "tool_result": result}
        )

    assert len(stream.getvalue()) < 200
