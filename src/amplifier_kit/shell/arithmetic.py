"""Arithmetic of shell texts: it works out what variables hold, and runs the commands in their subscripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amplifier_kit.shell.scripts import SimpleCommand
from amplifier_kit.shell.setters import DECLARING, SETTERS, builtin_words
from amplifier_kit.shell.words import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Arithmetic"]

_NAME: Final = re.compile(r"(?<![\w$])\$?\{?#?([A-Za-z_]\w*)")
_OF_ARGUMENTS: Final = re.compile(r"\$\{?[1-9@*]")
_COMPARES: Final = re.compile(r"(?<!\S)-(?:eq|ne|lt|le|gt|ge|v|R)(?!\S)")
_ASKS_FOR_NAME: Final = re.compile(r"(?<!\S)-[vR](?!\S)")
_SLICE: Final = re.compile(r"\$\{\w+(?:\[[^]]*\])?:(?![-=?+])(.*)\}", re.DOTALL)
_PLAIN: Final = re.compile(r"[\w\s.+*/%-]*")
_NUMBERS: Final = re.compile(
    r"\$[#?!$]|\$\{#\w+(?:\[[@*]\])?\}|\$(?:RANDOM|SECONDS|LINENO|EPOCHSECONDS|UID|PPID)"
)
_COUNTERS: Final = re.compile(
    r"(?:.*\|\s*)?(?:wc|nproc|seq|date|id -u|grep -[a-zA-Z]*c[a-zA-Z]*)(?:\s+[-+%\w.:/<]+)*"
)
"""Commands that put out numbers alone, whatever they are given."""

_SUBSCRIPT: Final = re.compile(r"(?:-\w+?)?[A-Za-z_]\w*\[.*[$`]", re.DOTALL)
_OF_THE_SHELL: Final = frozenset({
    "BASH_ARGV", "BASH_ARGV0", "BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_REMATCH", "DIRSTACK", "FUNCNAME",
    "MAPFILE", "OLDPWD", "OPTARG", "PWD", "REPLY", "_",
})  # fmt: skip
"""Variables that the shell itself sets to texts."""


class Arithmetic:
    """What a text works out, and which variables may hold more than numbers."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}
        self._doubtful: list[str] = []
        self._texts: set[str] = set(_OF_THE_SHELL)
        self._holds: dict[str, set[str]] = {}

    def take(self, node: Node) -> None:
        """Take a node that may work something out."""
        text = text_of(node)
        match node.type:
            case "arithmetic_expansion" | "c_style_for_statement" | "subscript":
                self._work_out(
                    node, text.partition("[")[2] if node.type == "subscript" else text
                )
            case "compound_statement" if text.startswith("(("):
                self._work_out(node, text)
            case "test_command" if (
                _COMPARES if text.startswith("[[") else _ASKS_FOR_NAME
            ).search(text):
                self._work_out(node, text)
            case "expansion":
                part = _SLICE.fullmatch(text)
                if part is not None:
                    self._work_out(node, part[1])
            case _:
                pass

    def take_command(self, command: SimpleCommand) -> None:
        """Take a command whose arguments the shell may work out."""
        words = builtin_words(command)
        name = None
        if words:
            name = words[0].static
        if name not in SETTERS and name not in ("test", "[", "wait"):
            return
        values = [value for word in words[1:] for value in word.values]
        # `read 'a[$(cmd)]'` runs the command: a subscript is evaluated as
        # arithmetic
        if any(map(_SUBSCRIPT.match, values)) or (
            name == "let" and not all(word.is_known for word in words)
        ):
            self._doubtful.append(command.text)
        if name == "let" or (
            name in DECLARING and any(re.match(r"-\w*i", value) for value in values)
        ):
            self._used.update(
                (each[1], command.text)
                for value in values
                for each in _NAME.finditer(value)
            )

    def take_value(self, name: str, node: Node | None) -> None:
        """Take what a variable is set to; `None` when nobody can say what that is."""
        # Bash evaluates a variable's text as an expression, and that one's
        # variables in turn, so a text that is no number may run a command.
        if node is None or not self._is_number(name, node):
            self._texts.add(name)

    def doubts(self, set_aside: frozenset[str] | None) -> tuple[str, ...]:
        """Say where something else than numbers may be worked out.

        Args:
            set_aside: variables that are set in ways that are not followed; `None` for any.
        """
        texts = self._texts
        if set_aside is not None:
            texts = self._texts | set_aside
        doubtful = list(self._doubtful)
        # what a variable holds may name further ones: all that can be reached is
        # checked
        waiting, seen = list(self._used.items()), set(self._used)
        while waiting:
            name, text = waiting.pop()
            if set_aside is None or name in texts:
                doubtful.append(text)
            further = self._holds.get(name, set()) - seen
            seen |= further
            waiting += ((each, text) for each in further)
        return tuple(
            f"{text!r:.80} works out a value that is not known to be a number"
            for text in dict.fromkeys(doubtful)
        )

    def _work_out(self, node: Node, text: str) -> None:
        is_certain = _OF_ARGUMENTS.search(text) is None and all(
            map(_is_certain, _below(node))
        )
        if not is_certain:
            self._doubtful.append(text)
        self._used.update((name, text) for name in _names(text))

    def _is_number(self, name: str, node: Node) -> bool:
        text = text_of(node)
        match node.type:
            case "number" | "word" | "raw_string" | "string_content":
                self._holds.setdefault(name, set()).update(_names(text))
                return _PLAIN.fullmatch(text.strip("'")) is not None
            case "arithmetic_expansion":
                return True
            case "simple_expansion" | "expansion":
                used = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", text)
                if used is not None:
                    self._holds.setdefault(name, set()).add(used[1])
                return used is not None or _NUMBERS.fullmatch(text) is not None
            case "command_substitution":
                return _is_counter(node)
            case "string" | "concatenation":
                return all(
                    self._is_number(name, child) for child in node.named_children
                )
            case _:
                return False


def _below(node: Node) -> Iterator[Node]:
    """Yield the nodes below one that the shell works out; not those of a command within it."""
    for child in node.children:
        yield child
        if child.type not in ("command_substitution", "do_group", "compound_statement"):
            yield from _below(child)


def _is_certain(node: Node) -> bool:
    """Whether a part of what is worked out holds nothing that the shell reads once more."""
    match node.type:
        case "raw_string" | "ansi_c_string":
            return False
        case "command_substitution":
            return _is_counter(node)
        case "word" | "string_content":
            return "\\" not in text_of(node)
        case _:
            return True


def _is_counter(node: Node) -> bool:
    return _COUNTERS.fullmatch(text_of(node).strip("$()` \n")) is not None


def _names(text: str) -> list[str]:
    return [found[1] for found in _NAME.finditer(text)]
