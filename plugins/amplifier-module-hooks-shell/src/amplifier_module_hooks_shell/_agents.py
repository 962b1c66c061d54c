"""The agents of plugin folders as partial plans, and the tools that an agent is left."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from amplifier_kit.claude_plugins import (
    ClaudeAgent,
    command_patterns,
    to_claude,
    tool_named,
)
from amplifier_kit.shell import CommandRule, PathPolicy, ShellPolicy
from amplifier_module_hooks_shell._loaded import LoadedPlugin
from amplifier_module_hooks_shell._surroundings import NAME, HookEnvironment
from amplifier_module_hooks_shell.config import ShellHooksConfig, ToolLimit
from amplifier_sdk.events import (
    SESSION_RESUME,
    SESSION_START,
    TOOL_PRE,
    SessionStart,
    ToolPre,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult

__all__ = ["AGENTS", "OnlyTools", "agent_plans"]

AGENTS: Final = "agents"
"""The channel: a contributor answers with partial plans by the agents' names."""

_FIRST: Final = -1000


def agent_plans(
    plugins: Sequence[LoadedPlugin], config: ShellHooksConfig
) -> dict[str, JSONObject]:
    """Return the plugins' agents as a plan's `agents` has them; a name that is taken has its plugin's before it."""
    plans: dict[str, JSONObject] = {}
    for loaded in plugins:
        for agent in loaded.plugin.agents:
            name = agent.name
            if agent.name in plans:
                name = f"{loaded.plugin.name}:{agent.name}"
            plans[name] = _plan(agent, loaded, config)
    return plans


def _plan(
    agent: ClaudeAgent, loaded: LoadedPlugin, config: ShellHooksConfig
) -> JSONObject:
    metadata: JSONObject = {"agent": agent.name, "plugin": loaded.plugin.name}
    if agent.color is not None:
        metadata["color"] = agent.color
    session: JSONObject = {"metadata": metadata}
    model = None
    if agent.model is not None:
        model = config.models.get(agent.model)
    if model is not None:
        session["orchestrator"] = {"config": {"model": model}}
    plan: JSONObject = {
        "description": agent.description,
        "system": {"instruction": agent.instruction},
        "session": session,
    }
    if agent.tools is not None or agent.disallowed_tools:
        limit: JSONObject = {"without": [*agent.disallowed_tools]}
        if agent.tools is not None:
            limit["only"] = [*agent.tools]
        # By name, so that laying plans over each other adds limits and replaces none.
        limits: JSONObject = {f"{loaded.plugin.name}:{agent.name}": limit}
        plan["hooks"] = [{"module": NAME, "config": {"tool_limits": limits}}]
    return plan


class OnlyTools:
    """Leaves a session the tools that are named, and no others; of several limits each holds.

    Args:
        surroundings: the session's.
        limits: what they name.
    """

    def __init__(
        self, surroundings: HookEnvironment, limits: Collection[ToolLimit]
    ) -> None:
        self._surroundings = surroundings
        self._limits = tuple(limits)

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
        name = data["tool_name"]
        if not self._is_left(name):
            return HookResult.deny(f"this agent has no tool {name!r}")
        command = data["tool_input"].get("command")
        for limit in self._limits:
            patterns = _patterns(limit, name)
            if patterns is not None and not self._may_run(patterns, command):
                return HookResult.deny(
                    f"this agent runs these commands alone: {', '.join(limit.only or ())}"
                )
        return None

    def _may_run(self, patterns: tuple[str, ...], command: object) -> bool:
        policy = ShellPolicy([CommandRule(decision="allow", commands=patterns)], "deny")
        path_policy = PathPolicy(
            directory=self._surroundings.directory,
            writable=(),
            home=os.path.expanduser("~"),
        )
        return (
            isinstance(command, str)
            and policy.evaluate(command, path_policy, {}).decision == "allow"
        )

    def _is_left(self, name: str) -> bool:
        names = to_claude(name, {}, "/").names
        for limit in self._limits:
            if limit.only is not None and not _wanted(limit.only).intersection(names):
                return False
            if _wanted(limit.without).intersection(names):
                return False
        return True


def _wanted(entries: Collection[str]) -> frozenset[str]:
    return frozenset(entries) | frozenset(map(tool_named, entries))


def _patterns(limit: ToolLimit, name: str) -> tuple[str, ...] | None:
    """Return the commands to which a limit holds a tool; `None` where it names the whole tool, or does not name it."""
    entries = [entry.strip() for entry in limit.only or () if tool_named(entry) == name]
    if not entries or any(entry.partition("(")[2] in ("", "*)") for entry in entries):
        return None
    return command_patterns(entries)
