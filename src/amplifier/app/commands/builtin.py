"""All commands of a session, put together."""

from __future__ import annotations

from collections.abc import Iterable

from anyio import to_thread

from amplifier.app.commands.context_commands import ContextCommands
from amplifier.app.commands.conversation_commands import ConversationCommands
from amplifier.app.commands.files import CommandFiles
from amplifier.app.commands.inspection_commands import InspectionCommands
from amplifier.app.commands.model_commands import ModelCommands
from amplifier.app.commands.registry import CommandRegistry, commands_of_modules
from amplifier.app.commands.rewind_commands import RewindCommands
from amplifier.app.commands.status_commands import StatusCommands
from amplifier.app.commands.talk import Talk
from amplifier_kit.commands import SessionCommand

__all__ = ["make_registry"]


async def make_registry(
    talk: Talk,
    own: Iterable[SessionCommand] = (),
    *,
    at_once: Iterable[SessionCommand] = (),
) -> tuple[CommandRegistry, list[str]]:
    """Gather the commands of a conversation: its own, those of files, those of modules.

    Args:
        talk: the conversation.
        own: what the application that holds it adds; these have their names before all others.
        at_once: likewise, and they need not wait for the end of a running turn.

    Returns:
        The commands, and what is wrong with files that are left out.
    """
    opened = talk.opened
    registry = CommandRegistry()
    registry.add(own)
    registry.add(at_once, at_once=True)
    for shows in (
        StatusCommands(talk, registry),
        InspectionCommands(talk),
        ModelCommands(talk),
    ):
        registry.add(shows.commands(), at_once=True)
    for changes in (
        ConversationCommands(talk),
        ContextCommands(talk),
        RewindCommands(talk),
    ):
        registry.add(changes.commands())
    coordinator = opened.session.coordinator
    files = CommandFiles(
        opened.composition.dirs,
        opened.composition.project,
        coordinator,
        opened.composition.collections,
    )
    registry.add(await to_thread.run_sync(files.commands))
    registry.add(await commands_of_modules(coordinator))
    return registry, files.problems
