"""The MCP servers that an editor passes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from amplifier.acp.mcp_servers import read_servers
from amplifier.app.directories import AppDirs
from amplifier.app.plan_entries import entries
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.composition import bare_composition, compose
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONObject
from tests.acp.editor import editing, text_block

TIME: JSONObject = {
    "name": "clock",
    "command": sys.executable,
    "args": ["-m", "mcp_server_time"],
    "env": [{"name": "CLOCK_KEY", "value": "a-key-of-the-editor"}],
}


@pytest.mark.process
async def test_they_serve_a_session_and_are_not_recorded(project: Path) -> None:
    async with editing(project, ["Hello"]) as editor:
        session = await editor.new(mcpServers=[TIME])
        await editor.prompt(session, text_block("/tools"))
        await editor.prompt(session, text_block("Hi"))
    async with editing(project) as again:
        given: JSONObject = {"sessionId": session, "cwd": str(project)}
        loaded = await again.request("session/load", **given, mcpServers=[])
        await again.prompt(session, text_block("/tools"))

    assert "get_current_time" in editor.said()
    assert "result" in loaded
    assert "get_current_time" not in again.said()
    stored = [path for path in (project.parent / "own").rglob("*") if path.is_file()]
    assert not any(b"a-key-of-the-editor" in path.read_bytes() for path in stored)


def test_a_server_of_the_session_keeps_its_name(project: Path) -> None:
    own: JSONObject = {"command": "clock", "require_approval": ["*"]}
    tool: JSONObject = {"module": "tool-mcp", "config": {"servers": {"clock": own}}}
    plan = project.parent / "plan.json"
    session = {"orchestrator": "loop-basic", "context": "context-simple"}
    plan.write_text(json.dumps({"session": session, "tools": [tool]}), "utf-8")
    dirs = AppDirs.find(project)
    composition = compose(PlanOptions(file=plan), dirs)
    other = {**TIME, "name": "other"}

    added, notices = read_servers([TIME, other]).added(composition)

    (entry,) = entries(added.plan, "tools")
    servers = as_object(as_object(entry["config"])["servers"])
    assert servers["clock"] == own
    assert set(servers) == {"clock", "other"}
    assert notices == [
        "The editor's MCP server 'clock' is not used: the session has one of that name."
    ]
    assert added.written == composition.written


def test_without_the_module_the_person_is_warned(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.acp.mcp_servers.find_spec", lambda _: None)
    composition = bare_composition(AppDirs.find(project))

    added, notices = read_servers([TIME]).added(composition)

    assert added == composition
    assert "install amplifier-module-tool-mcp" in notices[0]
