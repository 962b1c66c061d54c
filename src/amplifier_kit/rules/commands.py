"""Patterns of shell commands: every command of a text counts, whatever it stands in, and what is not certain is said.

A pattern is the words of one simple command, `git status`; in a word `*` stands for any characters and `a|b` for
either, `**` for any further words. It is anchored at both ends: `git status` is not `git status --short`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import attrs

from amplifier_kit.rules.calls import has_shell_grammar
from amplifier_kit.rules.truth import Truth
from amplifier_kit.shell.grammar import parse_script
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.rules import END, CommandRule
from amplifier_kit.shell.scripts import (
    HOLE,
    SYSTEM_FOLDERS,
    Script,
    ShellSyntaxError,
    SimpleCommand,
)
from amplifier_kit.shell.table import standard_table
from amplifier_kit.shell.wrappers import inner_of
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["command_allows", "command_catches", "read_command_pattern"]

_MAX_DEPTH: Final = 6
_READERS: Final = frozenset({".", "source"})
"""Commands that run what a file holds."""
_SUBSTITUTES: Final = r"`|\$\(|\$\[|[<>]\(|\$\{(?!\w+\})|\$'"
"""What makes words of other commands, or hides them; a text with any of it is not allowed by a rule."""
_DEEP: Final = r"(?s)^(?=.*(?:`|\$\(|[<>]\())(?=.*(?:<<|\$\{|\$\[|\(\())"
"""Commands that may stand within expansions or here-documents, where the grammar does not see all of them."""


def read_command_pattern(text: str) -> str:
    """Return a pattern as it stands in a configuration.

    Raises:
        ValueError: it can fit no command.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r} has quotes that do not match: {error}") from error
    if not words or words[0] == "**":
        raise ValueError(
            f"{text!r} names no command; begin with its name, as in 'git status'"
        )
    return text


def command_allows(patterns: Sequence[str], value: JSONValue) -> Truth:
    """Tell whether a text certainly runs nothing but what the patterns mean, and steers it in no other way.

    Variables that are set, functions, and files that are opened are such other ways.
    """
    if not isinstance(value, str):
        return Truth.MAYBE
    if not has_shell_grammar():
        return Truth.of(value.strip() in patterns)
    try:
        return Truth.of(
            all(_is_listed(patterns, command, 0) for command in _plain(value))
        )
    except _UncertainError:
        return Truth.MAYBE


def command_catches(patterns: Sequence[str], value: JSONValue) -> Truth:
    """Tell whether a text runs something that the patterns mean, or may: then what it runs is not all known."""
    if not isinstance(value, str):
        return Truth.MAYBE
    if not has_shell_grammar():
        if value.strip() in patterns:
            return Truth.YES
        return Truth.MAYBE
    return Truth.combine([*_caught(patterns, value, 0), Truth.NO], every=False)


class _UncertainError(Exception):
    """What a text would do cannot be said."""


def _plain(text: str) -> tuple[SimpleCommand, ...]:
    """Return the commands of a text that consists of commands alone."""
    script = None
    if not re.search(_SUBSTITUTES, text):
        script = _script(text)
    if (
        script is None
        or script.functions
        or script.assignments
        or script.doubts
        or not script.commands
    ):
        raise _UncertainError
    if any(command.assignments for command in script.commands):
        raise _UncertainError
    for redirect in script.redirects:
        if redirect.target.static != "/dev/null" and not redirect.is_of_handle:
            raise _UncertainError
    return script.commands


def _script(text: str) -> Script | None:
    try:
        return parse_script(text)
    except ShellSyntaxError:
        return None


def _is_listed(patterns: Sequence[str], command: SimpleCommand, depth: int) -> bool:
    """Whether a command, and all that it runs, fits a pattern for certain."""
    program = command.program
    if program is None or depth > _MAX_DEPTH or command.assignments:
        raise _UncertainError
    name = _name(program, only_system=True)
    inner = inner_of(name, command)
    if inner is None:
        return _fits(patterns, command, name, certainly=True)
    if inner.opaque is not None:
        raise _UncertainError
    own = inner.own is None or _fits(patterns, inner.own, name, certainly=True)
    texts = [nested for text in inner.texts for nested in _plain(text)]
    return own and all(
        _is_listed(patterns, each, depth + 1) for each in (*inner.commands, *texts)
    )


def _caught(patterns: Sequence[str], text: str, depth: int) -> Iterator[Truth]:
    script = _script(text)
    if script is None or depth > _MAX_DEPTH:
        yield Truth.MAYBE
        return
    if script.doubts or re.search(_DEEP, text):
        yield Truth.MAYBE
    for command in script.commands:
        yield from _caught_command(patterns, command, depth)


def _caught_command(
    patterns: Sequence[str], command: SimpleCommand, depth: int
) -> Iterator[Truth]:
    command = _unexpanded(command)
    program = command.words[0].static
    if program is None or depth > _MAX_DEPTH:
        yield Truth.MAYBE
        return
    name = _name(program, only_system=False)
    if any(
        _fits(patterns, each, name, certainly=True)
        for each in (command, _without_options(name, command))
    ):
        yield Truth.YES
    elif (
        name in _READERS
        or _mentions(patterns, command)
        or _fits(patterns, command, name, certainly=False)
    ):
        yield Truth.MAYBE
    inner = inner_of(name, command)
    if inner is None:
        return
    if inner.opaque is not None:
        yield Truth.MAYBE
    for each in inner.commands:
        yield from _caught_command(patterns, each, depth + 1)
    for text in inner.texts:
        yield from _caught(patterns, text, depth + 1)


def _without_options(name: str, command: SimpleCommand) -> SimpleCommand:
    """Return a command without the options before its subcommand, as far as they are known: `git -C . push` pushes."""
    rest = standard_table().subcommand(name, command.words[1:])
    if rest is None:
        return command
    return attrs.evolve(command, words=(command.words[0], *rest))


def _mentions(patterns: Sequence[str], command: SimpleCommand) -> bool:
    """Whether a command's arguments name one that the patterns mean: many programs run what they are given."""
    named = {
        part
        for word in command.words[1:]
        for value in word.values
        for part in re.findall(r"[\w.+-]+", value)
    }
    for pattern in patterns:
        wanted = {word for word in pattern.split() if re.fullmatch(r"\w[\w.+-]*", word)}
        if wanted and named.issuperset(wanted):
            return True
    return False


def _unexpanded(command: SimpleCommand) -> SimpleCommand:
    """Take what wildcards become for unknown: only the file system says that."""
    if not any(word.is_pattern for word in command.words):
        return command
    words = tuple(
        attrs.evolve(
            word,
            values=tuple(re.split(r"[*?\[]", value)[0] + HOLE for value in word.values),
        )
        if word.is_pattern
        else word
        for word in command.words
    )
    return attrs.evolve(command, words=words)


def _name(program: str, *, only_system: bool) -> str:
    """Return a program's name without its folder, of the system's folders alone or of any."""
    folder, _, name = program.rpartition("/")
    if not only_system or folder in SYSTEM_FOLDERS:
        return name
    return program


def _fits(
    patterns: Sequence[str], command: SimpleCommand, name: str, *, certainly: bool
) -> bool:
    return _shell_rule(tuple(patterns), certainly).fits(
        command, name, PathPolicy(directory=None, writable=())
    )


@lru_cache(maxsize=256)
def _shell_rule(patterns: tuple[str, ...], certainly: bool) -> CommandRule:
    """Make the shell kit's rule: one that asks also fits what is not known before the text runs."""
    anchored = tuple(
        text if text.split()[-1] in ("**", END) else f"{text} {END}"
        for text in patterns
    )
    return CommandRule(decision="allow" if certainly else "ask", commands=anchored)
