"""Agents of plugin folders: what of them enters a plan, and what an agent may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import (
    MockContextManager,
    MockDisplaySystem,
    MockOrchestrator,
    MockTool,
    ScriptedProvider,
)
from amplifier.testing.sessions import mounting
from amplifier_module_hooks_shell import mount
from amplifier_module_hooks_shell.config import agent_config
from amplifier_sdk import ChatResponse
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.jsontypes import JSONValue

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


async def test_an_agent_becomes_a_partial_plan(
    write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    folder = write_plugin(None, {"agents/reviewer.md": AGENT})
    async with open_session(
        {"plugins": [str(folder)], "models": {"sonnet": "big-model"}}
    ) as session:
        plan = (await agents_of(session))["code-reviewer"]

    assert str(plan["description"]).startswith(
        "Use this agent when code was written. Examples:\n\n<example>"
    )
    assert plan["system"] == {"instruction": "You review code."}
    assert plan["hooks"] == [
        {
            "module": "hooks-shell",
            "config": {
                "tool_limits": {
                    "guard:code-reviewer": {
                        "without": [],
                        "only": ["read_file", "grep"],
                    }
                }
            },
        }
    ]
    assert plan["session"] == {
        "metadata": {"agent": "code-reviewer", "plugin": "guard", "color": "blue"},
        "orchestrator": {"config": {"model": "big-model"}},
    }


async def test_agents_of_one_name_are_told_apart_by_their_plugins(
    write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    text = "---\ndescription: helps\nmodel: inherit\n---\nYou help."
    folders = [
        str(write_plugin(None, {"agents/helper.md": text}, name=name))
        for name in ("one", "two")
    ]
    async with open_session({"plugins": folders}) as session:
        agents = await agents_of(session)

    assert list(agents) == ["helper", "two:helper"]
    assert "hooks" not in agents["helper"]
    assert "orchestrator" not in str(agents["helper"])


async def test_an_agent_has_the_tools_that_it_names_and_no_others(
    work: Path, write_plugin: WritePlugin
) -> None:
    calls = [
        ToolCall(id="c1", name="bash", arguments={}),
        ToolCall(id="c2", name="grep", arguments={"pattern": "x"}),
    ]
    blocks = [
        ToolCallBlock(id=call.id, name=call.name, input=call.arguments)
        for call in calls
    ]
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
            {
                "module": "hooks-shell",
                "config": {
                    "plugins": [str(write_plugin(None, {"agents/reviewer.md": AGENT}))]
                },
            }
        ],
    }
    session = AmplifierSession(plan, ModuleLoader(modules=modules))
    session.coordinator.register_capability("session.working_dir", str(work))
    async with session:
        agents = await agents_of(session)
        result = await session.spawn(
            agent_name="code-reviewer", instruction="look", agent_configs=agents
        )

    assert result.output == "reviewed"
    assert result.metadata["color"] == "blue"
    assert (bash.calls, grep.calls) == ([], [{"pattern": "x"}])
    assert [tool.name for tool in provider.requests[0].tools or ()] == ["grep"]


async def test_a_tool_that_is_mounted_later_is_refused(
    open_session: OpenSession,
) -> None:
    late = MockTool("late")
    async with open_session(
        {"only_tools": ["Read", "mcp__srv__look"]}, "hello"
    ) as session:
        await session.execute("hi")
        await session.coordinator.mount("tools", late)
        host, tools = session.coordinator.host, session.coordinator.tools
        result = await host.run_tool(
            ToolCall(id="c1", name="late", arguments={}), tools
        )

    assert "this agent has no tool 'late'" in result.get_serialized_output()
    assert not late.calls


@pytest.mark.parametrize(
    ("tools", "left"),
    [
        ("tools: []", []),
        ("Tools: Read", ["read_file"]),
        ("TOOLS: [Read]", ["read_file"]),
        ("allowed-tools: Read", ["read_file"]),
        ("allowedTools: [Read]", ["read_file"]),
        ("disallowedTools: Bash", ["read_file", "write_file"]),
        ("disallowed_tools: [Bash, Write]", ["read_file"]),
        ("tools: Read, Bash\ndisallowedTools: Bash", ["read_file"]),
        ("argument: [x] [y]\nTools: Read", ["read_file"]),
        ("tools: Nothing", []),
        ("tools: Bash(git:*)", ["bash"]),
        ("tools: '*'", ["read_file", "write_file", "bash"]),
        ("color: red", ["read_file", "write_file", "bash"]),
    ],
)
async def test_a_limit_holds_in_every_spelling(
    work: Path,
    write_plugin: WritePlugin,
    open_session: OpenSession,
    tools: str,
    left: list[str],
) -> None:
    text = f"---\nname: limited\ndescription: works\n{tools}\n---\nYou work."
    plugin = write_plugin(None, {"agents/limited.md": text})
    async with open_session({"plugins": [str(plugin)]}) as session:
        plan = (await agents_of(session))["limited"]
    hooks = plan.get("hooks")
    config = hooks[0]["config"] if isinstance(hooks, list) else {}

    mocks = [MockTool(name) for name in ("read_file", "write_file", "bash")]
    async with open_session(config, "hello", tools=mocks) as session:
        await session.execute("hi")
        mounted = [
            name
            for name in session.coordinator.tools
            if name in ("read_file", "write_file", "bash")
        ]

    assert mounted == left


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ("tools: {Read: true}", "names of tools"),
        ("tools:", "names of tools"),
        ("tools: ''", "names of tools"),
        ("tools: true", "names of tools"),
        ("tools: [{Read: x}]", "names of tools"),
        ("disallowedTools: 7", "names of tools"),
        ("tools: Read\nTools: Bash", "said twice"),
        ("tools: Read(src/**)", "limits what cannot be limited"),
        ("tools: 'Bash(a|b)'", "limits what cannot be limited"),
        ("excludedTools: Bash", "no such field"),
        ("permissionMode: plan", "not supported"),
    ],
)
async def test_an_agent_whose_limit_is_not_understood_is_not_there(
    write_plugin: WritePlugin, open_session: OpenSession, tools: str, problem: str
) -> None:
    text = f"---\nname: limited\ndescription: works\n{tools}\n---\nYou work."
    plugin = write_plugin(None, {"agents/limited.md": text})
    shown = MockDisplaySystem()
    async with open_session(
        {"plugins": [str(plugin)]}, "hello", display_system=shown
    ) as session:
        assert await session.coordinator.collect_contributions("agents") == []
        await session.execute("hi")

    assert problem in shown.messages[0].message


async def test_an_agents_agents_have_no_tools_that_it_lacks(
    open_session: OpenSession,
) -> None:
    config: JSONValue = {
        "only_tools": ["Read", "Task", "Bash"],
        "tool_limits": {
            "a:outer": {"only": ["Read", "Task"]},
            "b:inner": {"only": ["Bash", "Read"]},
        },
    }
    async with open_session(
        config, "hello", tools=[MockTool("read_file"), MockTool("bash")]
    ) as session:
        await session.execute("hi")

        assert [
            name for name in session.coordinator.tools if name != "AskUserQuestion"
        ] == ["read_file"]


@pytest.mark.parametrize(
    ("entry", "command", "runs"),
    [
        ("Bash(git:*)", "git status", True),
        ("Bash(git status)", "git status", True),
        ("Bash(git status)", "git push", False),
        ("Bash(git:*)", "rm x", False),
        ("Bash(git:*)", "git status; rm x", False),
        ("Bash(a|b)", "a", False),
        ("Bash(*)", "rm x", True),
        ("Bash", "rm x", True),
    ],
)
async def test_a_limit_of_bash_to_some_commands_holds(
    open_session: OpenSession, entry: str, command: str, runs: bool
) -> None:
    bash = MockTool("bash", "done")
    async with open_session({"only_tools": [entry]}, tools=[bash]) as session:
        host, tools = session.coordinator.host, session.coordinator.tools
        result = await host.run_tool(
            ToolCall(id="c1", name="bash", arguments={"command": command}), tools
        )

    assert ("these commands alone" not in result.get_serialized_output()) is runs
    assert bool(bash.calls) is runs


def test_an_agent_adds_limits_to_those_of_its_session() -> None:
    narrow = agent_config["tool_limits"]
    own: JSONValue = {"a": {"only": ["Read"]}}

    assert narrow(None, {"b": {"without": ["Bash"]}}) == {"b": {"without": ["Bash"]}}
    assert narrow(own, own) == own
    assert narrow(own, {"a": {"only": ["Bash"]}}) == {
        "a": {"only": ["Read"]},
        "a+": {"only": ["Bash"]},
    }
    with pytest.raises(ValueError, match="limits by name"):
        narrow(own, ["Bash"])
