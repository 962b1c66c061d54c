"""Commands that a person types for the shell: one call of the session's tool, whose output the model reads next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from amplifier.app.commands.talk import Talk
from amplifier.app.sessions.tool_calls import OneCall, require_tool
from amplifier_kit.commands import CommandError
from amplifier_kit.open_data import as_object
from amplifier_kit.trust.untrusted import mark_untrusted
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier.app.sessions.opened import TurnEvents

__all__ = ["SHELL_MARK", "as_typed", "run_typed"]

SHELL_MARK: Final = "!"
"""What a line for the shell begins with."""

_TOOL: Final = "bash"
_HEAD: Final = "I ran this command myself:\n\n"
_RESULT: Final = "\n\nIts result:\n\n"
_ORCHESTRATOR: Final = "orchestrator"


@attrs.define(eq=False)
class _ShellTurn:
    """A loop that runs one command and writes it to the conversation with its output; it asks no model.

    Args:
        command: the shell text.
    """

    name: ClassVar[str] = "typed-shell"
    needs_provider: ClassVar[bool] = False

    command: str

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        """Run the command as a model's call would run, and return what it put out."""
        call = OneCall(_TOOL, {"command": self.command})
        written = await call.execute(prompt, context, providers, tools, hooks)
        if call.result is not None:
            written = _written(call.result) or written
        marked = mark_untrusted(written, "command")
        message = f"{_HEAD}{self.command}{_RESULT}{marked}"
        await context.add_message({"role": "user", "content": message})
        return ""


@asynccontextmanager
async def run_typed(talk: Talk, command: str) -> AsyncIterator[TurnEvents]:
    """Run a command in a turn of its own, through everything that guards a model's call of the shell.

    Args:
        talk: the conversation.
        command: the shell text.

    Yields:
        The turn's events.

    Raises:
        CommandError: the session has no shell.
        Exception: whatever ended the turn.
    """
    coordinator = talk.opened.session.coordinator
    try:
        require_tool(_TOOL, coordinator.tools)
    except ConfigError as error:
        message = (
            f"{SHELL_MARK} runs commands with the tool {_TOOL}, which this session does not have;"
            " 'amplifier module add tool-bash' gives it to new sessions"
        )
        raise CommandError(message) from error
    loop = coordinator.orchestrator
    # In the table alone: unmounting the loop would release what it holds.
    coordinator.mount_points[_ORCHESTRATOR] = _ShellTurn(command)
    try:
        async with talk.stream(f"{SHELL_MARK}{command}", typed="") as events:
            yield events
    finally:
        coordinator.mount_points[_ORCHESTRATOR] = loop


def as_typed(text: str) -> str:
    """Return a message of a person as they typed it: of a command that they ran, the command."""
    if not text.startswith(_HEAD):
        return text
    command, _, _ = text.removeprefix(_HEAD).partition(_RESULT)
    return f"{SHELL_MARK}{command}"


def _written(result: ToolResult) -> str:
    """Return what a command put out as a terminal shows it; empty where the result does not say."""
    output = as_object(result.output)
    parts = [str(output.get(name) or "").rstrip() for name in ("stdout", "stderr")]
    code = output.get("returncode")
    if code:
        parts.append(f"[exit code {code}]")
    return "\n".join(filter(None, parts))
