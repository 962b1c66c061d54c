"""Agents of plugin folders: what of them enters a plan, and what an agent may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import MockContextManager, MockOrchestrator, MockTool, ScriptedProvider
from amplifier.testing.sessions import mounting
from amplifier_module_hooks_shell import mount
from amplifier_sdk import ChatResponse
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import ToolCallBlock

OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
WritePlugin = Callable[..., Path]  # type: ignore[explicit-any]  # likewise
AGENT = """---
name: code-reviewer
description: Use this agent when code was written. Examples:

<example>
Context: a function was added
user: "Is it right: really?"
assistant: "I'll use the code-reviewer agent."
</example>

model: sonnet
color: blue
tools: ["Read", "Grep"]
---

You review code.
"""


async def agents_of(session: AmplifierSession) -> dict[str, Mapping[str, object]]:
    (found,) = await session.coordinator.collect_contributions("agents")
    assert isinstance(found, dict)
    return found


async def test_an_agent_becomes_a_partial_plan(write_plugin: WritePlugin, open_session: OpenSession) -> None:
    folder = write_plugin(None, {"agents/reviewer.md": AGENT})
    async with open_session({"plugins": [str(folder)], "models": {"sonnet": "big-model"}}) as session:
        plan = (await agents_of(session))["code-reviewer"]

    assert str(plan["description"]).startswith("Use this agent when code was written. Examples:\n\n<example>")
    assert plan["system"] == {"instruction": "You review code."}
    assert plan["hooks"] == [{"module": "hooks-shell", "config": {"only_tools": ["read_file", "grep"]}}]
    assert plan["session"] == {
        "metadata": {"agent": "code-reviewer", "plugin": "guard", "color": "blue"},
        "orchestrator": {"config": {"model": "big-model"}},
    }


async def test_agents_of_one_name_are_told_apart_by_their_plugins(
    write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    text = "---\ndescription: helps\nmodel: inherit\n---\nYou help."
    folders = [str(write_plugin(None, {"agents/helper.md": text}, name=name)) for name in ("one", "two")]
    async with open_session({"plugins": folders}) as session:
        agents = await agents_of(session)

    assert list(agents) == ["helper", "two:helper"]
    assert "hooks" not in agents["helper"]
    assert "orchestrator" not in str(agents["helper"])


async def test_an_agent_has_the_tools_that_it_names_and_no_others(work: Path, write_plugin: WritePlugin) -> None:
    calls = [ToolCall(id="c1", name="bash", arguments={}), ToolCall(id="c2", name="grep", arguments={"pattern": "x"})]
    blocks = [ToolCallBlock(id=call.id, name=call.name, input=call.arguments) for call in calls]
    asking = ChatResponse(content=blocks, tool_calls=calls, finish_reason="tool_calls")
    provider = ScriptedProvider(asking, "reviewed")
    bash, grep = MockTool("bash"), MockTool("grep")

    async def tools(coordinator: object, config: object) -> list[MockTool]:
        return [bash, grep]

    modules = {
        "loop": mounting(MockOrchestrator()),
        "memory": mounting(MockContextManager()),
        "model": mounting(provider),
        "tools": tools,
        "hooks-shell": mount,
    }
    plan = {
        "session": {"orchestrator": "loop", "context": "memory"},
        "providers": ["model"],
        "tools": ["tools"],
        "hooks": [
            {"module": "hooks-shell", "config": {"plugins": [str(write_plugin(None, {"agents/reviewer.md": AGENT}))]}}
        ],
    }
    session = AmplifierSession(plan, ModuleLoader(modules=modules))
    session.coordinator.register_capability("session.working_dir", str(work))
    async with session:
        agents = await agents_of(session)
        result = await session.spawn(agent_name="code-reviewer", instruction="look", agent_configs=agents)

    assert result.output == "reviewed"
    assert result.metadata["color"] == "blue"
    assert (bash.calls, grep.calls) == ([], [{"pattern": "x"}])
    assert [tool.name for tool in provider.requests[0].tools or ()] == ["grep"]


async def test_a_tool_that_is_mounted_later_is_refused(open_session: OpenSession) -> None:
    late = MockTool("late")
    async with open_session({"only_tools": ["Read", "mcp__srv__look"]}, "hello") as session:
        await session.execute("hi")
        await session.coordinator.mount("tools", late)
        host, tools = session.coordinator.host, session.coordinator.tools
        result = await host.run_tool(ToolCall(id="c1", name="late", arguments={}), tools)

    assert "this agent has no tool 'late'" in result.get_serialized_output()
    assert not late.calls
