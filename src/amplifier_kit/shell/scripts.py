"""What a shell text consists of, as far as it can be known without running it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_sdk.errors import ToolError

__all__ = [
    "HOLE", "SYSTEM_FOLDERS", "Assignment", "Redirect", "Script", "ShellSyntaxError", "SimpleCommand", "Word",
    "word_of",
]  # fmt: skip

HOLE: Final = "\0"
"""Stands in a word's value for a part that is known only when the text runs."""

SYSTEM_FOLDERS: Final = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"}
)
"""The folders of the system's own programs: one of them is known by its name alone."""


class ShellSyntaxError(ToolError):
    """A text cannot be read with certainty, so nobody can say what it would do."""


@attrs.frozen(kw_only=True)
class Word:
    """One word after quotes are taken away.

    Args:
        raw: as it is written.
        values: what it may be; `HOLE` stands for what is not known.
        is_pattern: whether it has unquoted wildcards.
        may_split: whether it may become several words, or none, for other reasons: braces, a value without quotes.
    """

    raw: str
    values: tuple[str, ...]
    is_pattern: bool = False
    may_split: bool = False

    @property
    def static(self) -> str | None:
        """The one value that it has; `None` when that is not certain."""
        if len(self.values) == 1 and HOLE not in self.values[0]:
            return self.values[0]
        return None

    @property
    def may_be_option(self) -> bool:
        """Whether it may begin with a dash; quotes do not hide that."""
        return any(value.startswith(("-", HOLE)) for value in self.values)

    @property
    def is_known(self) -> bool:
        """Whether every value is known in full."""
        return not any(HOLE in value for value in self.values)


def word_of(text: str) -> Word:
    """Make a word that means a text and nothing else."""
    return Word(raw=text, values=(text,))


@attrs.frozen(kw_only=True)
class Assignment:
    """A variable that is set."""

    name: str
    value: Word


@attrs.frozen(kw_only=True)
class Redirect:
    """A file that is opened; `operator` is as it is written, such as `>>`."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether the file may be changed."""
        return ">" in self.operator

    @property
    def is_of_handle(self) -> bool:
        """Whether it certainly copies or closes a handle, and opens no file."""
        target = self.target.static
        # `>&file` opens a file where what follows is no number
        is_copy = self.operator in (">&", "<&") and target is not None
        return is_copy and re.fullmatch(r"\d*-?", target or "") is not None


@attrs.frozen(kw_only=True)
class SimpleCommand:
    """A command with its arguments and the variables that it alone is given; its first word is what it runs.

    `is_function` says that it certainly calls a function of the text. `statement` is where the statement begins of
    which it is a part that the text's own shell runs, one behind the other with `&&`; `None` where it may be skipped
    without the next, repeated, or run by a shell of its own.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    is_function: bool = False
    statement: int | None = attrs.field(default=None, eq=False)

    @property
    def program(self) -> str | None:
        """What it runs, as it is named; `None` where that is known only when it runs."""
        # a pattern may stand for any program of the folder
        if self.words[0].is_pattern:
            return None
        return self.words[0].static

    @property
    def text(self) -> str:
        """The command as it is written."""
        return " ".join(word.raw for word in self.words)


@attrs.frozen(kw_only=True)
class Script:
    """A text as flat lists: whatever stands in loops, functions and substitutions is among them.

    `functions` are the functions that it defines, each with the names of the commands in its body; `doubts` say what
    of it may run more than that; `is_endless` that one of its loops may never end, `is_repeated` that a part of it
    may run more than once.
    """

    commands: tuple[SimpleCommand, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    functions: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    doubts: tuple[str, ...] = ()
    is_endless: bool = False
    is_repeated: bool = False

    def repeats(self, name: str) -> bool:
        """Whether a function calls itself, by way of others or not."""
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            for called in self.functions.get(waiting.pop(), ()):
                if called not in reached:
                    reached.add(called)
                    waiting.append(called)
        return name in reached
