"""By which words an answer may cover a text, and the commands like it: `git push`, with whatever stands behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_kit.shell.grammar import parse_script
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.scripts import Script, ShellSyntaxError, SimpleCommand
from amplifier_kit.shell.table import covered_table

__all__ = ["lone_command", "prefix_of"]

_ANYWHERE: Final = PathPolicy(directory=None, writable=())
"""No kind of argument that an answer covers is a path."""


def prefix_of(text: str, variables: Mapping[str, str] | None = None) -> str | None:
    """Return the words by which an answer may cover a text; `None` where it may cover that very text alone.

    The text is one plain command: nothing else is run, set, opened or put together in it.

    Args:
        text: what the shell is to run.
        variables: those whose values are known.
    """
    command = lone_command(text, variables)
    if command is None:
        return None
    finding = covered_table().find(
        command.words[0].static or "", command.words[1:], _ANYWHERE
    )
    if finding.refused:
        return None
    return finding.name


def lone_command(
    text: str, variables: Mapping[str, str] | None = None
) -> SimpleCommand | None:
    """Return the command that a text is, where it is one and nothing besides, and its words are known."""
    try:
        script = parse_script(text, variables or {})
    except ShellSyntaxError:
        return None
    if not _is_plain(script):
        return None
    command = script.commands[0]
    is_known = all(
        word.static is not None and not word.is_pattern for word in command.words
    )
    if command.text.split() != text.split():
        # something stands besides, such as the sign that sends it to the background
        return None
    if (
        # an answer covers words: what else stands in the text would be covered
        # unseen
        command.assignments
        or command.is_function
        or not is_known
        or not {"/", " "}.isdisjoint(command.program or " ")
    ):
        return None
    return command


def _is_plain(script: Script) -> bool:
    return len(script.commands) == 1 and not (
        script.doubts or script.assignments or script.redirects
    )
