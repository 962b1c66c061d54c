"""Words of a shell text: quotes taken away, variables put in where they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import product
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_kit.shell.scripts import HOLE, Word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Variable", "WordReader", "text_of"]

_MAX_VALUES: Final = 16
_PLAIN_SUBSTITUTIONS: Final = {
    "$(nproc)": "1",
    "`nproc`": "1",
    "$(pwd)": ".",
    "`pwd`": ".",
    "$PWD": ".",
}
"""Substitutions whose outcome is known well enough to evaluate a word."""

_SPLITS: Final = re.compile(r"[\s*?\[]")
_BRACES: Final = re.compile(r"\{([^{}'\"$\\`]*,[^{}'\"$\\`]*)\}")
_LIST: Final = re.compile(r"\{.*,.*\}", re.DOTALL)
_RANGE: Final = re.compile(r"\{[^{}]*\.\.[^{}]*\}")
_UNQUOTED: Final = frozenset(
    {
        "brace_expression",
        "command_substitution",
        "expansion",
        "simple_expansion",
        "word",
    }
)
"""Parts of words that the shell may take apart."""

_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_NUMERIC: Final = re.compile(
    r"x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})"
)


def text_of(node: Node) -> str:
    """Return the text of a node as it is written."""
    return (node.text or b"").decode("utf-8", "replace")


@attrs.frozen
class Variable:
    """Every value that a variable may have where it is set, and whether they are patterns of file names."""

    values: tuple[str, ...]
    is_pattern: bool = False


@attrs.frozen(eq=False)
class WordReader:
    """Reads words.

    Args:
        variables: what is known of each.
        certain: those that are set for certain where the reader is; the others may be empty.
    """

    _variables: Mapping[str, Variable]
    _certain: AbstractSet[str]

    def read(self, node: Node) -> Word:
        """Return a word with its values."""
        raw = text_of(node)
        values: tuple[str, ...] = tuple(
            dict.fromkeys(map("".join, product(*self._parts(node, quoted=False))))
        )
        # each variable multiplies the values; past a few the word counts as
        # unknown
        if len(values) > _MAX_VALUES:
            values = (HOLE,)
        if raw.startswith("~"):
            values = tuple(self._home(value) for value in values)
        may_split = self._may_split(node, values)
        return Word(
            raw=raw,
            values=values,
            is_pattern=self._is_pattern(node),
            may_split=may_split,
        )

    def _may_split(self, node: Node, values: tuple[str, ...]) -> bool:
        """Whether the shell may make several words of one, or none."""
        text = text_of(node)
        if "$@" in text or "[@]" in text or "${@" in text:
            return True
        if node.type == "concatenation" and (_RANGE.search(text) or _LIST.search(text)):
            return True
        is_unknown = any(HOLE in value for value in values)
        parts = [node]
        if node.type == "concatenation":
            parts = node.children
        return is_unknown and any(part.type in _UNQUOTED for part in parts)

    def _home(self, value: str) -> str:
        user, slash, rest = value[1:].partition("/")
        home = self._values("HOME")
        if user or len(home) != 1:
            return HOLE
        return home[0] + slash + rest

    def _is_pattern(self, node: Node) -> bool:
        if node.type in ("word", "extglob_pattern"):
            return bool(re.search(r"(?<!\\)[*?\[]", text_of(node)))
        if node.type in ("simple_expansion", "expansion"):
            variable = self._variables.get(text_of(node).strip("${}"))
            return variable is not None and variable.is_pattern
        return node.type in ("concatenation", "string") and any(
            map(self._is_pattern, node.children)
        )

    def _parts(self, node: Node, *, quoted: bool) -> list[tuple[str, ...]]:
        """Return the parts of a word in order, each with its possible values."""
        text = text_of(node)
        # `$PWD` is the folder only as long as the text sets no variable of that
        # name
        if text in _PLAIN_SUBSTITUTIONS and (
            text != "$PWD" or "PWD" not in self._variables
        ):
            return [(_PLAIN_SUBSTITUTIONS[text],)]
        match node.type:
            case "word" | "number":
                return [(_unescaped(text),)]
            case "concatenation":
                return self._concatenated(node, text)
            case "raw_string":
                return [(text[1:-1],)]
            case "ansi_c_string":
                return [(_ansi(text[2:-1]),)]
            case "string" | "translated_string":
                return self._string(node)
            case "simple_expansion" | "expansion":
                return [self._variable(text, quoted=quoted)]
            # the shell puts the name of a handle in its place
            case "process_substitution":
                return [("/dev/fd/63",)]
            case _:
                return [(HOLE,)]

    def _concatenated(self, node: Node, text: str) -> list[tuple[str, ...]]:
        found = _BRACES.search(text)
        if _RANGE.search(text) or (found is None and _LIST.search(text)):
            return [(HOLE,)]
        if found is None:
            return [
                part
                for child in node.children
                for part in self._parts(child, quoted=False)
            ]
        before, after = text[: found.start()], text[found.end() :]
        # braces are expanded before quotes and variables are read, which would
        # have to be done again for each of the words
        if re.search(r"['\"$\\`{}]", before + after):
            return [(HOLE,)]
        return [(before,), tuple(found[1].split(",")), (after,)]

    def _string(self, node: Node) -> list[tuple[str, ...]]:
        """Read a double-quoted string; what stands between its parts is white space that the grammar passed over."""
        data = node.text or b""
        parts: list[tuple[str, ...]] = []
        inner = node
        if node.type != "string":
            inner = next(child for child in node.children if child.type == "string")
        end = inner.start_byte
        for child in inner.children:
            gap = data[end - node.start_byte : child.start_byte - node.start_byte]
            parts.append((gap.decode("utf-8", "replace"),))
            if child.type == "string_content":
                parts.append(
                    (
                        re.sub(
                            r'\\([$`"\\\n])', lambda m: m[1].strip("\n"), text_of(child)
                        ),
                    )
                )
            elif child.type not in ('"', "$"):
                parts += self._parts(child, quoted=True)
            elif child.type == "$":
                parts.append(("$",))
            end = child.end_byte
        return parts

    def _variable(self, text: str, *, quoted: bool) -> tuple[str, ...]:
        # what does more than name a variable is the name of none, and not known
        values = self._values(text.strip("${}"))
        # without quotes the shell splits a value at blanks and expands wildcards
        # in it
        if not quoted and any(_SPLITS.search(value) for value in values):
            return (HOLE,)  # it becomes several words
        return values

    def _values(self, name: str) -> tuple[str, ...]:
        variable = self._variables.get(name)
        if variable is None:
            return (HOLE,)
        if name in self._certain:
            return variable.values
        return (*variable.values, HOLE)


def _unescaped(text: str) -> str:
    return re.sub(
        r"\\(\n|.)",
        lambda match: "" if match[1] == "\n" else match[1],
        text,
        flags=re.DOTALL,
    )


def _ansi(text: str) -> str:
    """Read the escapes of `$'…'`; what is not known makes a hole."""
    pieces: list[str] = []
    while text:
        plain, backslash, text = text.partition("\\")
        pieces.append(plain)
        if not backslash:
            break
        number = _NUMERIC.match(text)
        if number is not None:
            digits, base = next(
                (d, 8 if index == 1 else 16)
                for index, d in enumerate(number.groups())
                if d
            )
            code = int(digits, base)
            pieces.append(chr(code) if 0 < code < 0x110000 else HOLE)
            text = text[number.end() :]
        else:
            pieces.append(
                _ESCAPES.get(text[:1], text[:1] if text[:1] in "\\'\"?" else HOLE)
            )
            text = text[1:]
    return "".join(pieces)
