"""Commands that a person types in the chat: what modules offer through the channel `cli.commands`.

A command makes a prompt of its arguments, and a turn runs with it; or it acts itself and has an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "COMMANDS",
    "CommandAnswer",
    "CommandError",
    "CommandPrompt",
    "MakePrompt",
    "SessionCommand",
    "WrittenText",
    "refusing_command",
]

COMMANDS: Final = "cli.commands"
"""The channel: a contributor answers with a list of `SessionCommand`."""


class CommandError(AmplifierError):
    """A command cannot make its prompt; the message is for the person who typed it."""


@attrs.frozen
class WrittenText:
    """What the person wrote in a file: it mentions what an instruction in that folder may, and nothing else."""

    text: str
    folder: Path


@attrs.frozen(kw_only=True)
class CommandPrompt:
    """What a command came to.

    What the person typed behind the command is followed where it mentions files. What a server, a plugin or a project
    wrote is not.

    Args:
        text: the prompt of the turn.
        written: the part of it that stands in a file of the person's own.
        metadata: for `AmplifierSession.execute`, for example the `model` that shall answer.
    """

    text: str
    written: WrittenText | None = None
    metadata: Mapping[str, JSONValue] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class CommandAnswer:
    """What a command did itself: its text is shown to the person, and no turn runs.

    Args:
        text: what is shown.
        is_diff: whether it is a unified diff, which a terminal may colour.
    """

    text: str
    is_diff: bool = False


MakePrompt: TypeAlias = Callable[[str], Awaitable[CommandPrompt | CommandAnswer]]
"""Makes the prompt, or the answer, of what stands behind the command's name, as it was typed.

It may ask the person, and raises `CommandError` when it can make neither, with a message for them.
"""


@attrs.frozen(kw_only=True)
class SessionCommand:
    """A command, as a chat lists and runs it.

    Args:
        name: what is typed behind the slash; letters, digits, `-`, `_`, `.` and `:`.
        make: makes the prompt, or acts and answers.
        description: one line for the list of commands.
        argument_hint: what to type behind the name, such as `[file] [language]`.
        source: who offers it, such as `plugin:review`.
        aliases: other names; where two commands share a name, each is still reached by one of these.
    """

    name: str
    make: MakePrompt = attrs.field(repr=False)
    description: str = ""
    argument_hint: str = ""
    source: str = ""
    aliases: tuple[str, ...] = ()


def refusing_command(name: str, reason: str, *, source: str) -> SessionCommand:
    """Return a command that only says why it cannot be used: its name is taken, and means nothing else.

    Args:
        name: the name that a definition claims which nobody trusted.
        reason: why it is refused, and what helps.
        source: who offers it.
    """

    # Taken and refusing: with the name free, what is typed would become a prompt.
    async def refuse(_: str) -> CommandPrompt:
        raise CommandError(reason)

    return SessionCommand(
        name=name,
        make=refuse,
        description="not trusted: run 'amplifier trust'",
        source=source,
    )
