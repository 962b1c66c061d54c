"""Servers that are programs: what they are given, and that nothing of them is left."""

from __future__ import annotations

import json
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


CANARIES = (
    "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "GITHUB_TOKEN", "HTTPS_PROXY", "LD_PRELOAD",
    "NODE_OPTIONS", "PYTHONPATH", "SSH_AUTH_SOCK", "CANARY",
)  # fmt: skip


def is_alive(pid: str | int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except OSError:
        return False


async def test_a_server_gets_what_is_listed_and_nothing_else(
    opened: Open, monkeypatch: pytest.MonkeyPatch, text: Text, scripted: Scripted
) -> None:
    for name in CANARIES:
        monkeypatch.setenv(name, f"canary-{name}")
    monkeypatch.setenv("LISTED_ONE", "yes")
    server = scripted(
        "environment",
        env={"GIVEN": "a ${CANARY}", "OTHER": "${UNSET:-fallback}"},
        env_allow=["LISTED_*"],
    )
    async with opened({"s": server}) as one:
        environment, _ = json.loads(await text(one, "mcp__s__echo", text="x"))
        leaked = {name for name in environment if name in CANARIES}
        assert leaked == set()
        assert environment["GIVEN"] == "a canary-CANARY"
        assert environment["OTHER"] == "fallback"
        assert environment["LISTED_ONE"] == "yes"
        known = {
            "PATH",
            "HOME",
            "USER",
            "LOGNAME",
            "SHELL",
            "TZ",
            "TERM",
            "NO_COLOR",
            "COLORTERM",
            "VIRTUAL_ENV",
        }
        known |= {
            "GIVEN",
            "OTHER",
            "LISTED_ONE",
            "AMPLIFIER_PROCESS_TREE",
            "LANGUAGE",
            "LANG",
        }
        assert {
            name
            for name in environment
            if name not in known and not name.startswith("LC_")
        } == set()


async def test_secrets_in_the_configuration_are_not_told(
    opened: Open, monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "correct-horse-battery")
    code = "import os, sys; sys.exit('cannot log in with ' + os.environ['LOGIN'])"
    server = {
        "command": sys.executable,
        "args": ["-c", code],
        "env": {"LOGIN": "${MY_API_TOKEN}"},
    }
    async with opened({"s": server}) as one:
        problem = str((await status(one, "s"))["problem"])
        assert "cannot log in with" in problem
        assert "correct-horse" not in problem


async def test_a_server_starts_in_the_folder_it_is_told(
    opened: Open, text: Text, scripted: Scripted, work: Path
) -> None:
    (work / "sub").mkdir()
    async with opened({"s": scripted("environment", cwd="sub")}) as one:
        _, folder = json.loads(await text(one, "mcp__s__echo", text="x"))
        assert os.path.realpath(folder) == os.path.realpath(work / "sub")


async def test_server_of_persons_own_runs_nothing_of_project(
    opened: Open, status: Status, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = work / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("sh", "cat"):
        (tools / name).write_text(f"#!/bin/sh\ntouch {work}/ran\n")
        (tools / name).chmod(0o755)
    (work / "json.py").write_text(f"open({str(work / 'ran')!r}, 'w')\n")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    servers: JSONObject = {
        "program": {"command": "sh", "args": ["-c", "cat /dev/null; exit 1"]},
        "module": {
            "command": sys.executable,
            "args": ["-m", "json.tool", "/nowhere"],
            "cwd": ".",
        },
        "text": {
            "command": sys.executable,
            "args": ["-c", "import json; exit(1)"],
            "cwd": ".",
        },
    }
    async with opened(servers) as one:
        for name in servers:
            assert (await status(one, name))["state"] == "failed"

    assert not (work / "ran").exists()


@pytest.mark.parametrize("mode", ["good", "stubborn", "stuck"])
async def test_nothing_is_left_when_the_session_ends(
    opened: Open, text: Text, mode: str, scripted: Scripted, until: Until, noted: Noted
) -> None:
    async with opened({"s": scripted(mode)}) as one:
        if mode == "stuck":
            async with anyio.create_task_group() as calls:
                calls.start_soon(partial(text, one), "mcp__s__wait")
                await until(lambda: noted("waiting"))
                calls.cancel_scope.cancel()
        (pid,) = noted("started")
        assert is_alive(pid)
    assert not is_alive(pid)


async def test_a_cancelled_call_tells_the_server_and_leaves_it_usable(
    opened: Open, text: Text, scripted: Scripted, until: Until, noted: Noted
) -> None:
    handles = len(os.listdir("/proc/self/fd"))
    async with opened({"s": scripted("grandchildren")}) as one:
        for number in range(3):
            async with anyio.create_task_group() as calls:
                calls.start_soon(partial(text, one), "mcp__s__wait")
                await until(lambda: len(noted("waiting")) > number)  # noqa: B023  # called within its round
                calls.cancel_scope.cancel()
            await until(lambda: len(noted("cancelled")) > number)  # noqa: B023  # called within its round
        assert await text(one, "mcp__s__echo", text="x") == "x"
        assert list(map(is_alive, noted("child"))) == [True] * 3
    assert list(map(is_alive, noted("child"))) == [False] * 3
    assert len(os.listdir("/proc/self/fd")) <= handles + 2


async def test_a_server_that_is_killed_is_noticed_at_once(
    opened: Open,
    status: Status,
    scripted: Scripted,
    noted: Noted,
    until_state: UntilState,
) -> None:
    async with opened({"s": scripted("good")}) as one:
        os.kill(int(noted("started")[0]), signal.SIGKILL)
        await until_state("failed")
        assert "it ended with code 137" in str((await status(one, "s"))["problem"])


async def test_a_session_that_is_cancelled_leaves_nothing(
    opened: Open, text: Text, scripted: Scripted, until: Until, noted: Noted
) -> None:
    with anyio.CancelScope() as scope:
        async with (
            opened({"s": scripted("grandchildren")}) as one,
            anyio.create_task_group() as calls,
        ):
            calls.start_soon(partial(text, one), "mcp__s__wait")
            await until(lambda: noted("waiting"))
            scope.cancel()
    assert not any(map(is_alive, [*noted("child"), *noted("started")]))
