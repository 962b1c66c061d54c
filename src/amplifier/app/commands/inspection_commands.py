"""Commands that list the parts of a session: tools, agents, hooks, MCP servers, child sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amplifier.app.commands.status_commands import rows
from amplifier.app.commands.talk import Talk
from amplifier.app.sessions.tool_calls import show_tools
from amplifier.kernel.hooks.registrations import Registration
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["InspectionCommands"]

_OWN: Final = "amplifier"
"""Who registered what is no module's."""
_MCP_STATUS: Final = "mcp_status"


@attrs.frozen(eq=False)
class InspectionCommands:
    """The commands that list what a session is made of.

    Args:
        talk: the conversation.
    """

    talk: Talk

    def commands(self) -> list[SessionCommand]:
        """Return them."""
        return [
            SessionCommand(name="tools", make=self.tools, description="List the tools and what they do"),
            SessionCommand(name="agents", make=self.agents, description="List the agents that work can be given to"),
            SessionCommand(name="hooks", make=self.hooks, description="List who hears which events"),
            SessionCommand(name="mcp", make=self.mcp, description="List the MCP servers and how they are"),
        ]  # fmt: skip

    async def tools(self, _: str) -> CommandAnswer:
        """List the tools with their effects."""
        mode = self.talk.mode
        table = []
        for tool in show_tools(self.talk.opened.session.coordinator.tools):
            is_refused = mode.is_on and mode.refusal(tool.name) is not None
            if is_refused:
                told = "(not in plan mode)"
            else:
                told = _first_line(tool.description)
            table.append((tool.name, tool.effects_text, told))
        return self._table(table, "There are no tools.")

    async def agents(self, _: str) -> CommandAnswer:
        """List the agents of the session's plan."""
        agents = as_object(self.talk.opened.composition.plan.get("agents"))
        table = []
        for name, agent in sorted(agents.items()):
            description = as_object(agent).get("description")
            table.append((name, _first_line(str(description or ""))))
        return self._table(table, "There are no agents.")

    async def hooks(self, _: str) -> CommandAnswer:
        """List who hears an event, in the order in which they run: their module, and what they may do."""
        hooks = self.talk.opened.session.coordinator.hooks
        in_order = sorted(hooks.registrations, key=lambda entry: entry.pattern)
        table = [
            (
                entry.pattern,
                hooks.module_of(entry.plugin) or _OWN,
                f"{_words(entry.name)} ({_role(entry)}, priority {entry.priority})",
            )
            for entry in in_order
        ]
        return self._table(table, "Nobody hears any event.")

    async def mcp(self, _: str) -> CommandAnswer:
        """List the MCP servers, as the module that runs them sees them."""
        tool = self.talk.opened.session.coordinator.tools.get(_MCP_STATUS)
        if tool is None:
            return CommandAnswer(
                text="No MCP servers: the session has no module tool-mcp. 'amplifier mcp --help' says how to add one."
            )
        try:
            result = await tool.execute({})
        except AmplifierError as error:
            raise CommandError(str(error)) from error
        servers = as_object(result.output).get("servers")
        if not isinstance(servers, list):
            raise CommandError(
                "The module tool-mcp does not say which servers there are"
            )
        table = [_server(as_object(server)) for server in servers]
        return self._table(table, "There are no MCP servers.")

    def _table(self, table: Sequence[Sequence[str]], otherwise: str) -> CommandAnswer:
        if not table:
            return CommandAnswer(text=otherwise)
        return CommandAnswer(text="\n".join(rows(table, self.talk.columns)))


def _server(server: JSONObject) -> tuple[str, str, str]:
    """Say how a server is: its name, its state, and what it offers or what is wrong."""
    held_back = as_object(server.get("held_back"))
    offered = f"{server.get('tools', 0)} tools"
    if held_back:
        offered = f"{offered}, held back: {', '.join(held_back)}"
    told = server.get("problem") or server.get("warning") or offered
    return str(server.get("name", "")), str(server.get("state", "")), str(told)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _words(name: str) -> str:
    """Return a handler's name as words: of a method the method's, which its module's name stands beside."""
    return " ".join(name.rpartition(".")[2].replace("_", " ").split())


def _role(entry: Registration) -> str:
    if entry.decides_on(entry.pattern):
        return "may refuse"
    return "observes"
