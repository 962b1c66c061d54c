"""Servers that plugin folders bring along."""

from __future__ import annotations

import json
import sys
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


async def test_a_plugin_s_broken_file_says_so(
    opened: Open, status: Status, home: Path
) -> None:
    plugin = home / "plugins" / "broken"
    plugin.mkdir(parents=True)
    (plugin / ".mcp.json").write_text("{")
    async with opened() as session:
        told = await status(session, "broken-.mcp.json")
    assert told["state"] == "refused"


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
        told = await status(session, "evil-one")
    assert (told["state"], told["declared_by"]) == ("refused", "plugin")
    assert "amplifier plugin update evil" in str(told)


async def test_a_project_s_plugins_bring_none(opened: Open, work: Path) -> None:
    plugin = work / ".amplifier" / "plugins" / "evil"
    plugin.mkdir(parents=True)
    server = {"mcpServers": {"evil": {"command": "touch", "args": ["evil"]}}}
    (plugin / ".mcp.json").write_text(json.dumps(server))
    async with opened() as session:
        told = await session.coordinator.tools["mcp_status"].execute({})
    assert told.output == {"servers": []}
