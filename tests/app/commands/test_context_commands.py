"""What the model sees: counted by source, shown less of, and the parts of a session."""

from __future__ import annotations

from amplifier.app.directories import AppDirs
from amplifier_kit.commands import CommandPrompt
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import ToolResult
from tests.app.commands.test_session_commands import _plan, conversation, say
from tests.app.projects import write


async def test_context_says_what_fills_the_window(dirs: AppDirs) -> None:
    write(dirs.root / "notes.md", "Milk and bread. " * 200)
    async with conversation(dirs, "Read @notes.md", "again") as (_, registry):
        lines = (await say(registry, "/context")).splitlines()

    sources = [line.split("  ")[0] for line in lines[:-1]]
    assert set(sources) == {
        "definitions of tools",
        "files and notes that were added",
        "your prompts",
        "answers and their calls",
    }
    assert lines[-1].startswith("About ")
    assert "of 200,000 tokens" in lines[-1]


async def test_compact_lists_what_is_shown_and_left_out(dirs: AppDirs) -> None:
    context: JSONValue = {
        "module": "context-simple",
        "config": {"max_tokens": 2000, "target_usage": 0.2, "protected_recent": 0.1},
    }
    session: JSONValue = {"orchestrator": "loop-basic", "context": context}
    long = [f"prompt {number} " + "word " * 60 for number in range(6)]
    async with conversation(dirs, *long, plan={**_plan(), "session": session}) as (
        _,
        registry,
    ):
        lines = (await say(registry, "/compact")).splitlines()

    assert lines[0].startswith("The model sees ")
    kinds = [line.split()[0] for line in lines[1:]]
    assert "left" in kinds
    assert "shown" in kinds


async def test_init_asks_the_agent_for_agents_md(dirs: AppDirs) -> None:
    async with conversation(dirs) as (_, registry):
        made = await registry.find("init").make("the tests matter")

    assert isinstance(made, CommandPrompt)
    assert "AGENTS.md" in made.text
    assert made.text.endswith("the tests matter")


async def test_hooks_lists_who_hears_what(dirs: AppDirs) -> None:
    async with conversation(dirs) as (talk, registry):
        talk.opened.session.coordinator.hooks.register(
            "tool:pre", lambda *_: None, name="watch"
        )
        assert "tool:pre" in (listed := await say(registry, "/hooks"))
        assert "watch" in listed


class _Status:
    """What the module of MCP servers says of them."""

    name = "mcp_status"
    description = "Say how the servers are."

    async def execute(self, _: object, /) -> ToolResult:
        servers: JSONValue = [
            {"name": "docs", "state": "connected", "tools": 3},
            {"name": "db", "state": "failed", "tools": 0, "problem": "no answer"},
        ]
        return ToolResult(output={"servers": servers})


async def test_mcp_lists_the_servers(dirs: AppDirs) -> None:
    async with conversation(dirs) as (talk, registry):
        assert "no module tool-mcp" in await say(registry, "/mcp")
        await talk.opened.session.coordinator.mount("tools", _Status(), "mcp_status")
        assert (await say(registry, "/mcp")).splitlines() == [
            "docs  connected  3 tools",
            "db    failed     no answer",
        ]
