"""Commands that list the parts of a session: tools, agents, hooks, MCP servers, child sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from amplifier.app.commands.status_commands import answer_of, rows
from amplifier.app.commands.talk import TalkCommands
from amplifier.app.sessions.tool_calls import show_tools
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["InspectionCommands"]

_OWN: Final = "amplifier"
"""Who registered what is no module's."""
_MCP_STATUS: Final = "mcp_status"


class InspectionCommands(TalkCommands):
    """The commands that list what a session is made of."""

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
            text = _first_line(tool.description)
            if mode.is_on and mode.refusal(tool.name) is not None:
                text = "(not in plan mode)"
            table.append((tool.name, tool.effects_text, text))
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
        table = []
        for entry in sorted(hooks.registrations, key=lambda entry: entry.pattern):
            role = "may refuse" if entry.decides_on(entry.pattern) else "observes"
            message = f"{_words(entry.name)} ({role}, priority {entry.priority})"
            table.append(
                (entry.pattern, hooks.module_of(entry.plugin) or _OWN, message)
            )
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
        return answer_of(rows(table, self.talk.columns) or [otherwise])


def _server(server: JSONObject) -> tuple[str, str, str]:
    held_back = as_object(server.get("held_back"))
    offered = f"{server.get('tools', 0)} tools"
    if held_back:
        offered = f"{offered}, held back: {', '.join(held_back)}"
    text = server.get("problem") or server.get("warning") or offered
    return str(server.get("name", "")), str(server.get("state", "")), str(text)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _words(name: str) -> str:
    """Return a handler's name as words: of a method the method's, which its module's name stands beside."""
    return " ".join(name.rpartition(".")[2].replace("_", " ").split())
