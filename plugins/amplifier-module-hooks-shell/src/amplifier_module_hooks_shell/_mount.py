"""What the entry point names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Final

from amplifier_kit.commands import COMMANDS, SessionCommand, refusing_command
from amplifier_kit.trust import TrustDecision
from amplifier_module_hooks_shell._agents import AGENTS, OnlyTools, agent_plans
from amplifier_module_hooks_shell._commands import Commands
from amplifier_module_hooks_shell._configured_hooks import OwnHook
from amplifier_module_hooks_shell._events import ClaudeEvents
from amplifier_module_hooks_shell._folders import FoundHooks, find_plugins
from amplifier_module_hooks_shell._hookrunner import HookRunner
from amplifier_module_hooks_shell._observers import Observers
from amplifier_module_hooks_shell._surroundings import NAME, HookEnvironment
from amplifier_module_hooks_shell._tools import AskUserQuestion, SlashCommand
from amplifier_module_hooks_shell.config import ShellHooksConfig, ToolLimit
from amplifier_sdk import Coordinator, HookResult
from amplifier_sdk.configuration import read_config
from amplifier_sdk.events import SESSION_RESUME, SESSION_START, SessionStart
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.threads import run_blocking

__all__ = ["mount"]

_SKILLS: Final = "skills.folders"
_PENDING: Final = "trust.pending"


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Run external commands on the session's events, and offer what plugin folders bring.

    Raises:
        ConfigError: the configuration does not fit, or a hook of a plugin cannot be read.
    """
    settings = read_config(ShellHooksConfig, config, subject=f"configuration of {NAME}")
    surroundings = HookEnvironment(coordinator, settings)
    coordinator.register_cleanup(
        partial(run_blocking, surroundings.remove, name="hooks-shell.remove")
    )
    found = await run_blocking(
        partial(find_plugins, surroundings), name="hooks-shell.plugins"
    )
    observers = Observers()
    own = [OwnHook(hook, surroundings, observers) for hook in settings.hooks]
    runner = HookRunner(surroundings, found.loaded, observers)
    # A task of its own only where something runs in it.
    if runner.observes or not all(hook.decides for hook in own):
        await observers.open(coordinator)
    for hook in own:
        hook.register()
    ClaudeEvents(surroundings, runner).register()
    limits = [*settings.tool_limits.values()]
    if settings.only_tools is not None:
        limits.append(ToolLimit(only=settings.only_tools))
    if limits:
        OnlyTools(surroundings, limits).register()
    _contribute(surroundings, found)
    # Commands and questions are for a person, who speaks to the root session alone.
    if not surroundings.is_child:
        await _offer(surroundings, found)


def _contribute(surroundings: HookEnvironment, found: FoundHooks) -> None:
    """Offer the agents and the skills."""
    agents = agent_plans(found.loaded, surroundings.config)
    if agents:
        surroundings.coordinator.register_contributor(AGENTS, NAME, lambda: agents)
    skills: list[JSONValue] = [
        {"path": str(path), "source": f"plugin:{loaded.plugin.name}"}
        for loaded in found.loaded
        for path in loaded.plugin.skills
    ]
    if skills:
        surroundings.coordinator.register_contributor(_SKILLS, NAME, lambda: skills)


def _refused(pending: Sequence[TrustDecision]) -> Iterator[SessionCommand]:
    """Yield a command for each that waits for trust: it says so, and no other one of its name stands in for it."""
    for decision in pending:
        for name in sorted(decision.contents):
            folder, is_command, file = name.partition("/commands/")
            if is_command and file.endswith(".md"):
                reason = f"{name} in this folder has this name, and is not trusted ({decision.reason})"
                remedy = "look at it and run 'amplifier trust', or use another name"
                yield refusing_command(
                    PurePath(file).stem,
                    f"{reason}; {remedy}",
                    source=f"plugin:{PurePath(folder).name.lstrip('.')}",
                )


async def _offer(surroundings: HookEnvironment, found: FoundHooks) -> None:
    """Offer what is for the person: commands, what is to be trusted, and what went wrong."""
    coordinator, settings = surroundings.coordinator, surroundings.config
    commands = Commands(surroundings, found.loaded)
    refused = list(_refused(found.pending))
    if commands.found or refused:
        coordinator.register_contributor(
            COMMANDS, NAME, lambda: [*commands.listed(), *refused]
        )
    if commands.found:
        if settings.ask_questions:
            await coordinator.mount("tools", AskUserQuestion(surroundings))
        if settings.model_commands and any(
            not command.file.is_manual for command in commands.found
        ):
            await coordinator.mount("tools", SlashCommand(commands))
    if found.pending:
        coordinator.register_contributor(_PENDING, NAME, lambda: list(found.pending))
    lines = [
        f"The {decision.kind} of {decision.folder} are not used: {decision.reason}"
        for decision in found.pending
    ] + list(found.problems)
    if lines:
        message = surroundings.shown("\n".join(lines))

        def report_problems(_: str, __: SessionStart) -> HookResult:
            return HookResult(user_message=message, user_message_level="warning")

        for event in (SESSION_START, SESSION_RESUME):
            surroundings.listen(event, report_problems)
