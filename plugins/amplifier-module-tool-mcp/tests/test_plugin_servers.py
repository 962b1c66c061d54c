"""Servers that plugin folders bring along."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from shutil import copy

import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_kit.claude_plugins import evaluate_plugin
from amplifier_kit.trust import TrustStore
from amplifier_sdk.jsontypes import JSONObject

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]


@pytest.mark.process
async def test_the_person_s_own_plugins_bring_servers(
    opened: Open, text: Text, home: Path
) -> None:
    plugin = home / "plugins" / "clock"
    (plugin / ".claude-plugin").mkdir(parents=True)
    copy(Path(__file__).with_name("scripted_server.py"), plugin / "server.py")
    server = {
        "command": sys.executable,
        "args": ["-IS", "${CLAUDE_PLUGIN_ROOT}/server.py"],
    }
    # One shape is of a file of its own, the other of the manifest.
    (plugin / ".mcp.json").write_text(json.dumps({"one": server}))
    manifest = {"name": "clock", "mcpServers": {"two": server}}
    (plugin / ".claude-plugin/plugin.json").write_text(json.dumps(manifest))

    async with opened() as session:
        for name in ("one", "two"):
            assert await text(session, f"mcp__clock-{name}__echo", text="hi") == "hi"
    async with opened(home_file=False) as session:
        assert "mcp__clock-one__echo" not in session.coordinator.tools


@pytest.mark.parametrize("name", [".mcp.json", ".claude-plugin/plugin.json"])
async def test_a_plugin_s_broken_file_says_so(
    opened: Open, status: Status, home: Path, name: str
) -> None:
    file = home / "plugins" / "broken" / name
    file.parent.mkdir(parents=True)
    file.write_text("{")
    async with opened() as session:
        reported = await status(session, f"broken-{file.name}")
    assert reported["state"] == "refused"


async def test_a_changed_plugin_s_servers_are_refused(
    opened: Open, status: Status, home: Path
) -> None:
    plugin = home / "plugins" / "evil"
    plugin.mkdir(parents=True)
    (plugin / ".mcp.json").write_text('{"one": {"command": "touch", "args": ["ran"]}}')
    store = TrustStore.in_home()
    store.grant(evaluate_plugin(plugin, store))
    (plugin / "more.sh").write_text("exit 0")

    async with opened() as session:
        reported = await status(session, "evil-one")
    assert (reported["state"], reported["declared_by"]) == ("refused", "plugin")
    assert "amplifier plugin update evil" in str(reported)


@pytest.mark.process
async def test_a_server_runs_from_a_copy_of_what_was_agreed_to(
    opened: Open,
    text: Text,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    plugin = home / "plugins" / "clock"
    plugin.mkdir(parents=True)
    copy(Path(__file__).with_name("scripted_server.py"), plugin / "server.py")
    arguments = ["-IS", "${CLAUDE_PLUGIN_ROOT}/server.py"]
    server = {"command": sys.executable, "args": arguments}
    (plugin / ".mcp.json").write_text(json.dumps({"one": server}))
    store = TrustStore.in_home()
    store.grant(evaluate_plugin(plugin, store))
    # compiled code is no part of what is agreed to, and would run in the source's place
    (plugin / "__pycache__").mkdir()

    async with opened() as session:
        assert await text(session, "mcp__clock-one__echo", text="hi") == "hi"
        (root,) = tmp_path.glob("amplifier-mcp-*/clock")
        copied = sorted(path.name for path in root.iterdir())
        assert copied == [".mcp.json", "server.py"]
    assert not root.parent.exists()


async def test_two_plugins_servers_of_one_name_are_refused(
    opened: Open, status: Status, home: Path
) -> None:
    for folder, name in (("a", "b-c"), ("a-b", "c")):
        (home / "plugins" / folder).mkdir(parents=True)
        server = {name: {"command": "touch", "args": ["ran"]}}
        (home / "plugins" / folder / ".mcp.json").write_text(json.dumps(server))
    async with opened() as session:
        reported = await status(session, "a-b-c")
    assert reported["state"] == "refused"
    assert "two plugins have a server that is called so" in str(reported)


async def test_a_project_s_plugins_bring_none(opened: Open, work: Path) -> None:
    plugin = work / ".amplifier" / "plugins" / "evil"
    plugin.mkdir(parents=True)
    server = {"mcpServers": {"evil": {"command": "touch", "args": ["evil"]}}}
    (plugin / ".mcp.json").write_text(json.dumps(server))
    async with opened() as session:
        reported = await session.coordinator.tools["mcp_status"].execute({})
    assert reported.output == {"servers": []}
