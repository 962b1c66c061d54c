"""Servers that do not start, end, or send too much: the session goes on, and says what is wrong."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import anyio
import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.testing import EventRecorder
from amplifier_module_tool_mcp.events import MCP_LOG
from amplifier_sdk.jsontypes import JSONObject

pytestmark = pytest.mark.process

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Coroutine[None, None, str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Scripted = Callable[..., JSONObject]  # type: ignore[explicit-any]  # options go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]
Until = Callable[[Callable[[], object]], Awaitable[None]]
Noted = Callable[[str], list[str]]
UntilState = Callable[[str], Awaitable[None]]
States = Callable[[], list[str]]


SERVER = str(Path(__file__).with_name("scripted_server.py"))


async def test_a_server_that_fails_leaves_the_others_alone(
    opened: Open, text: Text, status: Status, scripted: Scripted
) -> None:
    servers = {
        "good": scripted(),
        "exits": scripted("exits"),
        "missing": {"command": "no-such-program-anywhere"},
        "no-folder": scripted(cwd="nowhere"),
        "unset": {"command": "x", "args": ["${NO_SUCH_VARIABLE_ANYWHERE}"]},
    }
    async with opened(servers) as one:
        assert await text(one, "mcp__good__echo", text="x") == "x"
        reported = {name: (await status(one, name)) for name in servers}
        assert {name: entry["state"] for name, entry in reported.items()} == {
            "good": "ready",
            "exits": "failed",
            "missing": "failed",
            "no-folder": "refused",
            "unset": "refused",
        }
        problem = str(reported["exits"]["problem"])
        assert "it ended with code 1; its last output: no database" in problem
        assert problem.startswith("<untrusted-content")
        assert "there is no program 'no-such-program-anywhere'" in str(
            reported["missing"]["problem"]
        )
        assert "nowhere does not exist" in str(reported["no-folder"]["problem"])
        assert "NO_SUCH_VARIABLE_ANYWHERE is not set" in str(
            reported["unset"]["problem"]
        )


async def test_server_silent_is_waited_for_no_longer_than_configured(
    opened: Open, status: Status, scripted: Scripted, until: Until, states: States
) -> None:
    async with opened(
        {"s": scripted("hangs")}, start_timeout=0.1, connect_timeout=0.5
    ) as one:
        assert (await status(one, "s"))["state"] == "connecting"
        await until(states)
        problem = str((await status(one, "s"))["problem"])
        assert "it did not answer within 0.5 s (connect_timeout)" in problem


async def test_a_slow_server_joins_later(
    opened: Open, text: Text, scripted: Scripted, until: Until
) -> None:
    async with opened({"s": scripted()}, start_timeout=0.001) as one:
        assert sorted(one.coordinator.tools) == ["mcp_status"]
        await until(lambda: "mcp__s__echo" in one.coordinator.tools)
        assert await text(one, "mcp__s__echo", text="x") == "x"


async def test_a_server_that_died_is_told_of_and_waited_with(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    failure: Text,
    scripted: Scripted,
    until: Until,
    noted: Noted,
    states: States,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.server._FIRST_WAIT", 30.0)
    async with opened({"s": scripted("dies")}) as one:
        assert "ended the connection" in await failure(one, "mcp__s__echo", text="x")
        await until(lambda: states() == ["ready", "failed"])
        reported = await failure(one, "mcp__s__echo", text="x")
        assert reported.startswith("the MCP server 's' cannot be used")
        assert (
            "<untrusted-content"
            in reported.split("it ended with code 3; its last output:")[0]
        )
        assert "sk-ant-api03" not in reported
        assert "it is retried in 30 s" in reported
        assert len(noted("started")) == 1


async def test_it_is_started_again_when_it_is_needed(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    failure: Text,
    scripted: Scripted,
    noted: Noted,
    states: States,
    until_state: UntilState,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.server._FIRST_WAIT", 0.0)
    async with opened({"s": scripted("dies")}) as one:
        for _ in range(2):
            assert "ended the connection" in await failure(
                one, "mcp__s__echo", text="x"
            )
            await until_state("failed")
        assert states() == ["ready", "failed"] * 2
        assert len(noted("started")) == 2


async def test_waits_grow_while_it_does_not_start(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    failure: Text,
    scripted: Scripted,
    noted: Noted,
    note: Path,
    until_state: UntilState,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.server._FIRST_WAIT", 0.0)
    async with opened({"s": scripted("good")}) as one:
        note.with_suffix(".down").touch()
        os.kill(int(noted("started")[0]), signal.SIGKILL)
        await until_state("failed")
        assert "no database" in await failure(one, "mcp__s__echo", text="x")
        monkeypatch.setattr("amplifier_module_tool_mcp.server._FIRST_WAIT", 10.0)
        assert "no database" in await failure(one, "mcp__s__echo", text="x")
        assert "it is retried in 40 s" in await failure(one, "mcp__s__echo", text="x")


@pytest.mark.parametrize("mode", ["good", "size-last"])
async def test_a_message_that_is_too_long_fails_its_call_alone(
    opened: Open, mode: str, text: Text, failure: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted(mode)}, max_message_bytes=100_000) as one:
        reported = await failure(one, "mcp__s__change", bytes=300_000)
        assert "it sent a message of 300" in reported
        assert "more than the 100000 of max_message_bytes; ask for less" in reported
        assert (
            "gave no answer that can be used; the call may have had its effect"
            in reported
        )
        assert await text(one, "mcp__s__change", bytes=5) == "aaaaa"


@pytest.mark.parametrize(
    ("number", "why"),
    [
        ("3000", "ValidationError: "),
        ("20000", "more than 10000 values in its parts; ask for less"),
        ("200000", "more than 100000 values; ask for less"),
    ],
)
async def test_a_message_of_very_many_values_fails_its_call_alone(
    opened: Open,
    number: str,
    why: str,
    text: Text,
    failure: Text,
    scripted: Scripted,
    noted: Noted,
) -> None:
    async with opened({"s": scripted("many")}) as one:
        reported = await failure(one, "mcp__s__echo", text=number)
        assert why in reported
        assert len(reported) < 1000
        # one value
        assert (await text(one, "mcp__s__echo", text='[{,"' * 50_000)).startswith("[{,")
        assert len(noted("started")) == 1


async def test_a_message_that_may_be_anybodys_ends_the_connection(
    opened: Open,
    failure: Text,
    status: Status,
    scripted: Scripted,
    until: Until,
    noted: Noted,
    until_state: UntilState,
) -> None:
    async with opened({"s": scripted("size-hidden")}, max_message_bytes=100_000) as one:
        async with anyio.create_task_group() as calls:

            async def wait() -> None:
                assert "ended the connection" in await failure(one, "mcp__s__wait")

            calls.start_soon(wait)
            await until(lambda: noted("waiting"))
            assert "ended the connection" in await failure(
                one, "mcp__s__change", bytes=300_000
            )
        await until_state("failed")
        assert "it sent a message of 300" in str((await status(one, "s"))["problem"])


async def test_a_long_text_is_cut_and_its_size_is_told(
    opened: Open, text: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted()}, max_result_chars=1000) as one:
        reported = await text(one, "mcp__s__change", bytes=5000)
        assert reported.startswith(
            "a" * 500 + "\n[... 4000 of 5000 characters are left out here ...]\n"
        )
        assert len(reported) < 1100


async def test_servers_error_output_is_in_log_redacted_and_bounded(
    opened: Open, text: Text, until: Until, events: EventRecorder
) -> None:
    script = (
        "import sys\nprint('password=hunter2hunter2', file=sys.stderr)\n"
        "[print('line', n, file=sys.stderr) for n in range(500)]\nsys.stderr.write('x' * 10_000_000 + '\\n')\n"
        f"sys.stderr.flush()\nsys.argv=['s', 'good']\nexec(open({SERVER!r}).read())"
    )
    async with opened(
        {"s": {"command": sys.executable, "args": ["-c", script]}}, max_log_lines=20
    ) as one:
        assert await text(one, "mcp__s__echo", text="x") == "x"
        await until(
            lambda: any(line["level"] == "notice" for line in events.data(MCP_LOG))
        )
        lines = [str(line["text"]) for line in events.data(MCP_LOG)]
        assert len(lines) == 21
        assert "hunter2" not in "".join(lines)


async def test_a_server_that_lists_without_end_is_stopped(
    opened: Open, status: Status, scripted: Scripted
) -> None:
    async with opened({"s": scripted("endless")}, max_tools=3) as one:
        reported = await status(one, "s")
        assert reported["tools"] == 3
        assert reported["held_back"] == dict.fromkeys(
            ["show", "change"], "the server has more than 3 tools (max_tools)"
        )


async def test_a_server_that_does_not_read_is_given_up(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    failure: Text,
    status: Status,
    scripted: Scripted,
    until: Until,
    noted: Noted,
    until_state: UntilState,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.stdio._WRITE_SECONDS", 0.3)
    async with opened({"s": scripted("stuck")}) as one:
        async with anyio.create_task_group() as calls:
            calls.start_soon(partial(failure, one), "mcp__s__wait")
            await until(lambda: noted("waiting"))
            assert "ended the connection" in await failure(
                one, "mcp__s__echo", text="x" * 500_000
            )
        await until_state("failed")
        assert "it does not read what it is sent" in str(
            (await status(one, "s"))["problem"]
        )


async def test_half_a_surrogate_pair_fails_the_call_alone(
    opened: Open, text: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted()}) as one:
        result = await one.coordinator.tools["mcp__s__echo"].execute({"text": "\ud800"})
        assert not result.success
        assert await text(one, "mcp__s__echo", text="x") == "x"
