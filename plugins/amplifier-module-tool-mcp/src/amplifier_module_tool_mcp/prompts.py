"""The prompts of servers, as commands that a person types."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_kit.commands import CommandError, CommandPrompt, SessionCommand
from amplifier_kit.trust.untrusted import without_marks
from amplifier_module_tool_mcp.definitions import command_name
from amplifier_module_tool_mcp.results import (
    ResultCollector,
    add_parts,
    one_line,
    words_of,
)
from amplifier_module_tool_mcp.server import Server
from amplifier_sdk.errors import ToolError

if TYPE_CHECKING:
    from mcp_types import Prompt, PromptMessage  # takes most of a second to import

__all__ = ["commands_of"]

_MOST: Final = 100


async def commands_of(server: Server) -> list[SessionCommand]:
    """Return a command for each prompt of a server that is connected; what it does not answer is left out."""
    client = server.ready
    if client is None or not server.has_prompts:
        return []
    from mcp import MCPError  # it is imported when there is a client

    try:
        found = await client.list_prompts()
    except (MCPError, ValueError, RuntimeError) as error:
        if isinstance(error, MCPError):
            server.failed(error)
        return []
    return [_command(server, prompt) for prompt in found.prompts[:_MOST]]


def _command(server: Server, prompt: Prompt) -> SessionCommand:
    hints = (
        f"<{item.name}>" if item.required else f"[{item.name}]"
        for item in prompt.arguments or ()
    )
    return SessionCommand(
        name=command_name(server.name, prompt.name),
        make=_Maker(server, prompt),
        description=one_line(prompt.description or prompt.title or ""),
        argument_hint=one_line(" ".join(hints)),
        source=f"mcp:{one_line(server.name)}",
    )


@attrs.frozen
class _Maker:
    """Makes the prompt of a turn; the arguments go by their places, the last one takes the rest."""

    server: Server
    prompt: Prompt

    async def __call__(self, arguments: str) -> CommandPrompt:
        """Ask the server for the prompt.

        Raises:
            CommandError: an argument is missing, or the server does not answer.
        """
        given = self._arguments(arguments)
        from mcp import MCPError  # it is imported when there is a client

        try:
            client = await self.server.client()
            found = await client.session.get_prompt(self.prompt.name, given)
        except ToolError as error:
            raise CommandError(self.server.unusable()) from error
        except (MCPError, ValueError, RuntimeError) as error:
            if isinstance(error, MCPError):
                self.server.failed(error)
            message = one_line(words_of(error))
            raise CommandError(
                f"the MCP server {self.server.name!a} does not make the prompt: {message}"
            ) from error
        text = "\n\n".join(self._shown(found.messages))
        return CommandPrompt(text=text[: self.server.config.max_result_chars])

    def _arguments(self, typed: str) -> dict[str, str]:
        wanted = self.prompt.arguments or []
        try:
            words = shlex.split(typed)
        except ValueError:  # a quote that does not end
            words = typed.split()
        if len(words) > len(wanted) > 0:
            words[len(wanted) - 1 :] = [" ".join(words[len(wanted) - 1 :])]
        missing = [item.name for item in wanted[len(words) :] if item.required]
        if missing:
            raise CommandError(f"missing: {', '.join(map(ascii, missing))}")
        return {item.name: word for item, word in zip(wanted, words, strict=False)}

    def _shown(self, messages: Sequence[PromptMessage]) -> list[str]:
        """Write the messages as one text; what is not the server's words for the person stays marked."""
        texts: list[str] = []
        for message in messages:
            before = ""
            if message.role != "user":
                before = f"({message.role}) "
            part = message.content
            if part.type == "text":
                texts.append(before + without_marks(part.text))
                continue
            reading = ResultCollector(
                f"mcp:{self.server.name}", self.server.config.max_result_chars
            )
            add_parts(reading, [part])
            texts.append(before + reading.text)
        return texts
