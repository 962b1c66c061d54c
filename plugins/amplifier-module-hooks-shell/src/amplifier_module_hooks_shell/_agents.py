"""The agents of plugin folders as partial plans, and the tools that an agent is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from amplifier_module_hooks_shell._loaded import Loaded
from amplifier_module_hooks_shell._surroundings import NAME, Surroundings
from amplifier_module_hooks_shell.config import ShellHooksConfig
from amplifier_sdk.events import SESSION_RESUME, SESSION_START, TOOL_PRE, SessionStart, ToolPre
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.kit.claude_plugins import AgentFile, to_claude, tool_named
from amplifier_sdk.results import HookResult

__all__ = ["AGENTS", "OnlyTools", "agent_plans"]

AGENTS: Final = "agents"
"""The channel: a contributor answers with partial plans by the agents' names."""

_FIRST: Final = -1000


def agent_plans(plugins: Sequence[Loaded], config: ShellHooksConfig) -> dict[str, JSONObject]:
    """Return the plugins' agents as a plan's `agents` has them; a name that is taken has its plugin's before it."""
    plans: dict[str, JSONObject] = {}
    for loaded in plugins:
        for agent in loaded.plugin.agents:
            name = agent.name if agent.name not in plans else f"{loaded.plugin.name}:{agent.name}"
            plans[name] = _plan(agent, loaded, config)
    return plans


def _plan(agent: AgentFile, loaded: Loaded, config: ShellHooksConfig) -> JSONObject:
    metadata: JSONObject = {"agent": agent.name, "plugin": loaded.plugin.name}
    if agent.color is not None:
        metadata["color"] = agent.color
    session: JSONObject = {"metadata": metadata}
    model = None if agent.model is None else config.models.get(agent.model)
    if model is not None:
        session["orchestrator"] = {"config": {"model": model}}
    plan: JSONObject = {
        "description": agent.description,
        "system": {"instruction": agent.instruction},
        "session": session,
    }
    if agent.tools is not None:
        tools: list[JSONValue] = list(agent.tools)
        plan["hooks"] = [{"module": NAME, "config": {"only_tools": tools}}]
    return plan


class OnlyTools:
    """Leaves a session the tools that are named, and no others.

    Args:
        surroundings: the session's.
        wanted: names of tools, ours or Claude Code's.
    """

    def __init__(self, surroundings: Surroundings, wanted: Collection[str]) -> None:
        self._surroundings = surroundings
        self._wanted = frozenset(wanted) | frozenset(map(tool_named, wanted))

    def register(self) -> None:
        """Take the others away when the session starts, and refuse what is mounted later."""
        for event in (SESSION_START, SESSION_RESUME):
            self._surroundings.listen(event, self._start, priority=_FIRST)
        self._surroundings.listen(TOOL_PRE, self._refuse, decides=True, priority=_FIRST)

    async def _start(self, _: str, __: SessionStart) -> None:
        coordinator = self._surroundings.coordinator
        mounted = coordinator.get("tools")
        for name in list(mounted) if isinstance(mounted, Mapping) else []:
            if not self._is_left(name):
                await coordinator.unmount("tools", name)

    async def _refuse(self, _: str, data: ToolPre) -> HookResult | None:
        if self._is_left(data["tool_name"]):
            return None
        return HookResult.deny(f"this agent has no tool {data['tool_name']!r}")

    def _is_left(self, name: str) -> bool:
        return not self._wanted.isdisjoint(to_claude(name, {}, "/").names)
