"""Servers that others wrote, from the package index."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from pathlib import Path

import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.testing import MockApprovalSystem

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name

pytestmark = [
    pytest.mark.process,
    pytest.mark.parametrize("anyio_backend", ["trio"], scope="session"),
]


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find_spec(package) is None,
        reason=f"the package {package.replace('_', '-')} is not installed",
    )


@needs("mcp_server_time")
async def test_the_time_is_told(opened: Open, text: Text, failure: Text) -> None:
    async with opened(
        {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]}}
    ) as one:
        reported = json.loads(
            await text(one, "mcp__time__get_current_time", timezone="Asia/Tokyo")
        )
        assert reported["timezone"] == "Asia/Tokyo"
        assert reported["datetime"].endswith("+09:00")
        assert "Invalid timezone" in await failure(
            one, "mcp__time__get_current_time", timezone="Mars/Olympus"
        )


@needs("mcp_server_git")
async def test_a_repository_is_read_and_writing_is_asked_about(
    opened: Open, text: Text, failure: Text, work: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / "a.txt").write_text("a")
    server = {
        "command": sys.executable,
        "args": ["-m", "mcp_server_git", "--repository", "${AMPLIFIER_WORKING_DIR}"],
        "exclude_tools": ["git_commit"],
        "require_approval": ["git_add"],
    }
    person = MockApprovalSystem("Deny", "Allow")
    async with opened({"git": server}, approval=person) as one:
        assert "mcp__git__git_commit" not in one.coordinator.tools
        assert "a.txt" in await text(one, "mcp__git__git_status", repo_path=str(work))
        arguments = {"repo_path": str(work), "files": ["a.txt"]}
        assert "Denied" in await failure(one, "mcp__git__git_add", **arguments)
        await text(one, "mcp__git__git_add", **arguments)
        assert "Changes to be committed" in await text(
            one, "mcp__git__git_status", repo_path=str(work)
        )
    assert len(person.questions) == 2
    assert "a.txt" in person.questions[0].prompt


@needs("mcp_server_fetch")
async def test_a_server_with_prompts_offers_commands(opened: Open) -> None:
    async with opened(
        {"fetch": {"command": sys.executable, "args": ["-m", "mcp_server_fetch"]}}
    ) as one:
        assert "mcp__fetch__fetch" in one.coordinator.tools
        commands = await one.coordinator.collect_contributions("cli.commands")
        assert "mcp:fetch:fetch" in str(commands)
