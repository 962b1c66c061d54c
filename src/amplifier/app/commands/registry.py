"""The commands of a session, found by what a person types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from amplifier_kit.commands import COMMANDS, CommandError, SessionCommand
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import did_you_mean

__all__ = ["CommandRegistry", "Typed", "commands_of_modules", "read_line"]

_LINE: Final = re.compile(r"/(?P<name>[\w.:-]*|\?)(?:\s+(?P<arguments>.*))?", re.DOTALL)
_NAME: Final = re.compile(r"[\w.:-]+|\?")
_USUAL: Final = "help"


@attrs.frozen
class Typed:
    """A command as it was typed: its name without the slash, and what stands behind it."""

    name: str
    arguments: str


def read_line(line: str) -> Typed | None:
    """Return the command of a line; `None` where it is a prompt, as one that begins with a path is.

    A slash alone asks for help.
    """
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return None
    return Typed(found["name"].casefold() or _USUAL, (found["arguments"] or "").strip())


@attrs.define(eq=False)
class CommandRegistry:
    """Commands by name. Who is added first has the name; the others are reached by their aliases and their source.

    A command `review` of the source `plugin:shop` is `/review`, and `/plugin:shop:review` in any case.
    """

    _named: dict[str, SessionCommand] = attrs.field(factory=dict, init=False)
    _listed: dict[int, str] = attrs.field(factory=dict, init=False)
    _at_once: set[str] = attrs.field(factory=set, init=False)

    def add(self, commands: Iterable[SessionCommand], *, at_once: bool = False) -> None:
        """Add commands; one that cannot be reached by any name is left out.

        Args:
            commands: they are added in their order.
            at_once: whether they need not wait for the end of a running turn.
        """
        for command in commands:
            names = [command.name, *command.aliases]
            if command.source:
                names.append(f"{command.source}:{command.name}")
            # The first who has a name keeps it: a module's `/clear` must not replace
            # the application's own.
            free = [
                name
                for name in names
                if _NAME.fullmatch(name) and name.casefold() not in self._named
            ]
            for name in free:
                self._named[name.casefold()] = command
                if at_once:
                    self._at_once.add(name.casefold())
            if free:
                self._listed[id(command)] = free[0]

    @property
    def listed(self) -> Mapping[str, SessionCommand]:
        """Each command by the name under which a list shows it, sorted."""
        by_id = {id(command): command for command in self._named.values()}
        return dict(sorted((name, by_id[key]) for key, name in self._listed.items()))

    @property
    def names(self) -> list[str]:
        """Every name that a command answers to, sorted."""
        return sorted(self._named)

    def is_at_once(self, name: str) -> bool:
        """Tell whether the command of a name need not wait for the end of a running turn."""
        return name.casefold() in self._at_once

    def find(self, name: str) -> SessionCommand:
        """Return the command of a name.

        Raises:
            CommandError: there is none; names the nearest.
        """
        found = self._named.get(name.casefold())
        if found is None:
            hint = did_you_mean(f"/{name}", [f"/{known}" for known in self._named])
            raise CommandError(f"There is no command /{name}{hint}")
        return found


async def commands_of_modules(coordinator: Coordinator) -> list[SessionCommand]:
    """Ask the session's modules for their commands; what is none is left out."""
    found = await coordinator.collect_contributions(COMMANDS)
    return [
        command
        for offered in found
        if isinstance(offered, (list, tuple))
        for command in offered
        if isinstance(command, SessionCommand)
    ]
