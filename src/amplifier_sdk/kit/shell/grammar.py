"""Reads shell texts with the grammar of tree-sitter-bash; what that does not know for certain is an error.

Needs the distributions `tree-sitter` and `tree-sitter-bash`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from amplifier_sdk.kit.shell.scripts import Assignment, Redirect, Script, ShellSyntaxError, SimpleCommand, Word
from amplifier_sdk.kit.shell.words import WordReader, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["parse_script"]

_MAX_BYTES: Final = 100_000
_MAX_DEPTH: Final = 60
_WORDS: Final = frozenset({
    "ansi_c_string", "arithmetic_expansion", "brace_expression", "command_substitution", "concatenation", "expansion",
    "number", "process_substitution", "raw_string", "simple_expansion", "string", "translated_string", "word",
})  # fmt: skip
_STRUCTURE: Final = frozenset({
    "array", "binary_expression", "c_style_for_statement", "case_item", "case_statement", "command_name", "comment",
    "compound_statement", "do_group", "elif_clause", "else_clause", "extglob_pattern", "file_descriptor",
    "heredoc_body", "heredoc_content", "heredoc_end", "heredoc_redirect", "heredoc_start", "if_statement", "list",
    "negated_command", "parenthesized_expression", "pipeline", "postfix_expression", "program",
    "redirected_statement", "regex", "special_variable_name", "string_content", "subscript", "subshell",
    "ternary_expression", "test_command", "test_operator", "unary_expression", "variable_assignment",
    "variable_assignments", "variable_name", "while_statement",
})  # fmt: skip
_INERT: Final = frozenset({
    "comment", "raw_string", "ansi_c_string", "`", "$(", "$((", "<(", ">(", "heredoc_start", "heredoc_end",
})  # fmt: skip
"""Leaves in which nothing is substituted."""

_HIDDEN: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")
_HIDDEN_PROCESS: Final = re.compile(r"[<>]\(")
"""In a word a process substitution that the grammar did not see; in quotes it is text."""

_NOT_FOLLOWED: Final = frozenset({
    "read", "mapfile", "readarray", "getopts", "printf", "eval", "source", ".", "let", "declare", "local", "typeset",
})  # fmt: skip
"""Commands that may set variables in ways that are not followed; where one stands no variable counts as known."""


def parse_script(text: str, variables: Mapping[str, str] | None = None) -> Script:
    """Read a text.

    Args:
        text: what a shell would be given.
        variables: those whose values are known; what the text itself sets is found out.

    Raises:
        ShellSyntaxError: it is no shell text, or its meaning is not certain; says where.
    """
    data = text.encode("utf-8", "replace")
    if len(data) > _MAX_BYTES or "\0" in text or "\r" in text or len(text.encode("utf-8", "ignore")) < len(data):
        raise ShellSyntaxError("the command is too long, or holds characters that no shell text has")
    if re.search(r"\S\\\n\S", text):
        raise ShellSyntaxError("a word of the command goes on behind the end of a line; write it in one line")
    root = _parser().parse(data).root_node
    if root.has_error:
        raise ShellSyntaxError(f"the command cannot be read as shell text{_where(root)}")
    known = {name: (value,) for name, value in (variables or {}).items()}
    first = _Walk(WordReader(known))
    first.visit(root, 0)
    # What the text sets is known only once all of it has been read.
    second = _Walk(WordReader(_known(first, known)))
    second.visit(root, 0)
    return second.script()


def _known(walk: _Walk, given: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    names = {command.words[0].static for command in walk.commands if command.words}
    if names & _NOT_FOLLOWED or walk.sets_by_arithmetic:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for assignment in walk.assignments:
        value = assignment.value
        earlier = found.get(assignment.name, given.get(assignment.name, ()))
        # A pattern becomes several words when the variable is used.
        found[assignment.name] = (*earlier, *value.values)
    return {**given, **{name: tuple(dict.fromkeys(values)) for name, values in found.items()}}


class _Walk:
    """One way through the tree of a text."""

    def __init__(self, reader: WordReader) -> None:
        self._reader = reader
        self.commands: list[SimpleCommand] = []
        self.assignments: list[Assignment] = []
        self._redirects: list[Redirect] = []
        self._functions: dict[str, frozenset[str]] = {}
        self.sets_by_arithmetic = False

    def script(self) -> Script:
        return Script(
            commands=tuple(self.commands),
            assignments=tuple(self.assignments),
            redirects=tuple(self._redirects),
            functions=dict(self._functions),
        )

    def visit(self, node: Node, depth: int) -> None:  # noqa: C901  # one case for each kind of node
        """Take a node and all below it."""
        if depth > _MAX_DEPTH:
            raise ShellSyntaxError(f"the command is nested more than {_MAX_DEPTH} levels deep")
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node)
            case "compound_statement" if text_of(node).startswith("(("):
                self.sets_by_arithmetic |= any(sign in text_of(node) for sign in ("=", "++", "--"))
            case "variable_assignment" if node.parent is not None and node.parent.type != "command":
                self.assignments.append(self._assignment(node))
            case "file_redirect":
                self._file_redirect(node)
            case "herestring_redirect":
                pass
            case "function_definition":
                self._function(node, depth)
                return
            case "for_statement":
                self._loop(node)
            case "arithmetic_expansion" | "postfix_expression" | "c_style_for_statement":
                self.sets_by_arithmetic |= "=" in text_of(node) or "++" in text_of(node) or "--" in text_of(node)
            case kind if node.is_named and kind not in _WORDS and kind not in _STRUCTURE:
                raise ShellSyntaxError(f"the command holds {text_of(node)!r:.80}, which is not understood")
            case kind if not node.children and kind not in _INERT and _hides_substitution(kind, text_of(node)):
                raise ShellSyntaxError(f"the command holds a substitution in {text_of(node)!r:.80} that cannot be read")
            case "heredoc_redirect" if re.search(r"['\"\\\\]", _start_of(node)):
                self._quoted_document(node, depth)
                return
            case _:
                pass
        for child in node.children:
            self.visit(child, depth + 1)

    def _quoted_document(self, node: Node, depth: int) -> None:
        """Take what stands beside a document in which nothing is put in."""
        for child in node.children:
            if child.type not in ("heredoc_body", "heredoc_start", "heredoc_end"):
                self.visit(child, depth + 1)

    def _function(self, node: Node, depth: int) -> None:
        """Take a function's body, and keep which commands stand in it."""
        name = text_of(node.named_children[0])
        before = len(self.commands)
        for child in node.children:
            self.visit(child, depth + 1)
        called = {command.words[0].static for command in self.commands[before:] if command.words}
        self._functions[name] = self._functions.get(name, frozenset()) | {each for each in called if each}

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        own: list[Assignment] = []
        # A declaration's own name, such as `export`, is no named node.
        for child in node.children:
            match child.type:
                case "variable_assignment" if node.type == "command":
                    own.append(self._assignment(child))
                case "variable_assignment":
                    words.append(Word(raw=text_of(child), values=(text_of(child.children[0]) + "=",)))
                case "command_name":
                    words.append(self._reader.read(child.children[0]))
                case "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "comment":
                    pass
                case "variable_name" | "export" | "declare" | "local" | "readonly" | "typeset" | "unset" | "unsetenv":
                    words.append(Word(raw=text_of(child), values=(text_of(child),)))
                case _:
                    words.append(self._reader.read(child))
        self.commands.append(SimpleCommand(words=tuple(words), assignments=tuple(own)))

    def _assignment(self, node: Node) -> Assignment:
        name, value = node.children[0], node.children[-1]
        known = value.type in _WORDS and "+=" not in {child.type for child in node.children}
        if name.type == "subscript":
            name, known = name.children[0], False
        word = self._reader.read(value) if known else Word(raw=text_of(node), values=("\0",))
        return Assignment(name=text_of(name), value=word)

    def _file_redirect(self, node: Node) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        # One without a target closes a handle.
        self._redirects += [Redirect(operator=operator, target=self._reader.read(each)) for each in targets]
        # A grammar may take words behind a redirection for further targets: they are arguments of the command.
        if len(targets) > 1:
            raise ShellSyntaxError(f"words behind the redirection {text_of(targets[0])!r:.80}; put it at the end")

    def _loop(self, node: Node) -> None:
        """A loop's variable may be any of its words."""
        names = [child for child in node.named_children if child.type == "variable_name"]
        values = [child for child in node.named_children if child.type in _WORDS]
        for name in names:
            for value in values:
                self.assignments.append(Assignment(name=text_of(name), value=self._reader.read(value)))
            if not values:
                self.assignments.append(Assignment(name=text_of(name), value=Word(raw="", values=("\0",))))


def _hides_substitution(kind: str, text: str) -> bool:
    """Tell whether the shell would run something in a leaf that the grammar takes for text."""
    is_quoted = kind in ("string_content", "heredoc_body", "heredoc_content")
    return _HIDDEN.search(text) is not None or (not is_quoted and _HIDDEN_PROCESS.search(text) is not None)


def _start_of(node: Node) -> str:
    return next((text_of(child) for child in node.children if child.type == "heredoc_start"), "")


def _where(node: Node) -> str:
    """Say where the first fault is."""
    while not (node.is_error or node.is_missing):
        node = next(child for child in node.children if child.has_error)
    return f" (at line {node.start_point.row + 1}, column {node.start_point.column + 1})"


@cache
def _parser() -> Parser:
    # Few sessions have a shell, and the grammar is a large table.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
