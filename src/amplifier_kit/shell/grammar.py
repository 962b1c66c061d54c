"""Reads shell texts with the grammar of tree-sitter-bash; what that does not know for certain is an error.

Needs the distributions `tree-sitter` and `tree-sitter-bash`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from amplifier_kit.shell.ambiguity import check_certain, check_documents, part_of
from amplifier_kit.shell.arithmetic import Arithmetic
from amplifier_kit.shell.disk_usage import loops_without_end
from amplifier_kit.shell.scripts import (
    HOLE,
    Assignment,
    Redirect,
    Script,
    ShellSyntaxError,
    SimpleCommand,
    Word,
)
from amplifier_kit.shell.setters import is_call_of, names_set_by
from amplifier_kit.shell.words import Variable, WordReader, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["parse_script"]

_MAX_BYTES: Final = 100_000
_MAX_DEPTH: Final = 60
_MAX_PARTS: Final = 10_000
"""Parts of a text, each word and sign one: evaluating them takes half a second, in which nothing else runs."""
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
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Characters that a shell takes for parts of a word, and the grammar for space, or the other way round."""

_SCOPES: Final = frozenset({
    "c_style_for_statement", "case_statement", "command_substitution", "for_statement", "function_definition",
    "if_statement", "pipeline", "process_substitution", "redirected_statement", "subshell", "while_statement",
})  # fmt: skip
"""Parts that may not run, or in a shell of their own: what they set is not certain behind them."""

_REPEATED: Final = frozenset(
    {"c_style_for_statement", "for_statement", "function_definition", "while_statement"}
)
_RELIED_ON: Final = frozenset(
    {"builtin", "cd", "command", "nproc", "popd", "pushd", "pwd"}
)
"""Commands whose meaning is relied on; a text that gives them another one is not followed."""


def parse_script(text: str, variables: Mapping[str, str] | None = None) -> Script:
    """Read a text.

    Args:
        text: what a shell would be given.
        variables: those whose values are known; what the text itself sets is found out.

    Raises:
        ShellSyntaxError: it is no shell text, or its meaning is not certain; says where.
    """
    data = text.encode("utf-8", "replace")
    # `replace` and `ignore` differ where half a surrogate pair stands, which no
    # shell would be given as it is
    if (
        len(data) > _MAX_BYTES
        or _CONTROL.search(text)
        or len(text.encode("utf-8", "ignore")) < len(data)
    ):
        raise ShellSyntaxError(
            "the command is too long, or holds characters that no shell text has"
        )
    # the shell joins such a word, and the grammar reads two
    if re.search(r"\S\\\n\S", text):
        raise ShellSyntaxError(
            "a word of the command goes on behind the end of a line; write it in one line"
        )
    check_documents(text)
    root = _parser().parse(data).root_node
    if root.has_error:
        raise ShellSyntaxError(
            f"the command cannot be read as shell text{_where(root)}"
        )
    if root.descendant_count > _MAX_PARTS:
        raise ShellSyntaxError(
            f"the command has more than {_MAX_PARTS:,} parts; write them to a file and run that"
        )
    # The text is read twice: what a variable may hold is known only when every
    # assignment was seen, since a loop runs earlier lines again.
    known = {name: Variable((value,)) for name, value in (variables or {}).items()}
    first = _Walk(known, known)
    first.visit(root, 0)
    set_aside = _set_aside(first, first.commands)
    # What `let` sets is a number.
    doubts = first.arithmetic.doubts(
        _set_aside(
            first, [each for each in first.commands if not is_call_of(each, "let")]
        )
    )
    # What the text sets is known only once all of it has been read.
    second = _Walk(_known(first, known, set_aside), known, set_aside)
    second.visit(root, 0)
    # a variable is the name of a command that sets others
    if _set_aside(second, second.commands) != set_aside:
        second = _Walk(_known(first, known, None), known, None)
        second.visit(root, 0)
    # the assignment's children were taken with it, and it is certain only behind
    # them
    return second.script(doubts)


def _set_aside(walk: _Walk, commands: Sequence[SimpleCommand]) -> frozenset[str] | None:
    """Return the names that commands set or unset in ways that are not followed; `None` where it may be any."""
    found = set(walk.defaults)
    for names in map(names_set_by, commands):
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _known(
    walk: _Walk, given: Mapping[str, Variable], set_aside: frozenset[str] | None
) -> dict[str, Variable]:
    """Return what each variable may hold."""
    # any variable may have got another value, so none is known; the working
    # directory is named, or `$PWD` would count as the folder where the text began
    if walk.sets_by_arithmetic or set_aside is None:
        return {"PWD": Variable((HOLE,))}
    found = dict(given)
    for assignment in walk.assignments:
        # every value that it ever gets counts, whatever the order: branches and
        # loops make the order uncertain
        earlier = found.get(assignment.name, Variable(()))
        values = tuple(dict.fromkeys((*earlier.values, *assignment.value.values)))
        found[assignment.name] = Variable(
            values, earlier.is_pattern or assignment.value.is_pattern
        )
    return {**found, **dict.fromkeys(set_aside, Variable((HOLE,)))}


class _Walk:
    """One way through the tree of a text."""

    def __init__(
        self,
        known: Mapping[str, Variable],
        given: Mapping[str, Variable],
        set_aside: frozenset[str] | None = frozenset(),
    ) -> None:
        self._set_aside = set_aside
        self.arithmetic = Arithmetic()
        self._certain = set(given)
        self._reader = WordReader(known, self._certain)
        self._defined: set[str] = set()
        self._trail: list[tuple[set[str], str]] = []
        self.commands: list[SimpleCommand] = []
        self.assignments: list[Assignment] = []
        self._redirects: list[Redirect] = []
        self._functions: dict[str, frozenset[str]] = {}
        self.sets_by_arithmetic = False
        self.defaults: set[str] = set()
        self._is_endless = False
        self._is_repeated = False

    def script(self, doubts: tuple[str, ...]) -> Script:
        return Script(
            doubts=doubts,
            commands=tuple(self.commands),
            assignments=tuple(self.assignments),
            redirects=tuple(self._redirects),
            functions=dict(self._functions),
            is_endless=self._is_endless,
            is_repeated=self._is_repeated,
        )

    def visit(self, node: Node, depth: int) -> None:  # noqa: C901  # one case for each kind of node
        """Take a node and all below it."""
        if depth > _MAX_DEPTH:
            raise ShellSyntaxError(
                f"the command is nested more than {_MAX_DEPTH} levels deep"
            )
        # before anything is read from the node: later steps rely on the tree
        # being right
        check_certain(node)
        self.arithmetic.take(node)
        self._is_endless |= loops_without_end(node)
        self._is_repeated |= node.type in _REPEATED
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node)
            case "compound_statement" if text_of(node).startswith("(("):
                self.sets_by_arithmetic |= any(
                    sign in text_of(node) for sign in ("=", "++", "--")
                )
            case "variable_assignment" if (
                node.parent is not None and node.parent.type != "command"
            ):
                self.assignments.append(self._assignment(node))
                self._inner(node, depth)
                self._make_certain(self._certain, self.assignments[-1].name)
                return
            case "expansion":
                self._expansion(text_of(node))
            case "file_redirect":
                self._file_redirect(node)
            case "herestring_redirect":
                pass
            case "function_definition":
                self._function(node, depth)
                return
            case "for_statement":
                self._loop(node)
            case (
                "arithmetic_expansion" | "postfix_expression" | "c_style_for_statement"
            ):
                self.sets_by_arithmetic |= (
                    "=" in text_of(node)
                    or "++" in text_of(node)
                    or "--" in text_of(node)
                )
            case kind if (
                node.is_named and kind not in _WORDS and kind not in _STRUCTURE
            ):
                raise ShellSyntaxError(
                    f"the command holds {text_of(node)!r:.80}, which is not understood"
                )
            case "heredoc_redirect" if re.search(
                r"['\"\\]", part_of(node, "heredoc_start")
            ):
                self._quoted_document(node, depth)
                return
            case _:
                pass
        self._inner(node, depth)

    def _inner(self, node: Node, depth: int) -> None:
        """Take all that stands in a node; what is set where it may not run, or in another shell, is not certain."""
        mark = len(self._trail)
        children = node.children
        for index, child in enumerate(children):
            here = len(self._trail)
            self.visit(child, depth + 1)
            # in the background it runs in a shell of its own; behind `&&` and
            # `||` it may not run at all
            is_aside = index + 1 < len(children) and children[index + 1].type == "&"
            if is_aside or (node.type == "list" and index):
                self._forget(here)
        if node.type in _SCOPES:
            self._forget(mark)

    def _make_certain(self, names: set[str], name: str) -> None:
        if name not in names:
            names.add(name)
            self._trail.append((names, name))

    def _forget(self, mark: int) -> None:
        """Take back what became certain since then."""
        while len(self._trail) > mark:
            names, name = self._trail.pop()
            names.remove(name)

    def _quoted_document(self, node: Node, depth: int) -> None:
        """Take what stands beside a document in which nothing is put in."""
        for child in node.children:
            if child.type not in ("heredoc_body", "heredoc_start", "heredoc_end"):
                self.visit(child, depth + 1)

    def _function(self, node: Node, depth: int) -> None:
        """Take a function's body, and keep which commands stand in it."""
        name = text_of(node.named_children[0])
        # `cd() { …; }` would change the meaning of every move that is followed
        # here
        if name in _RELIED_ON:
            raise ShellSyntaxError(
                f"the command makes another {name!r}; give the function a name of its own"
            )
        before = len(self.commands)
        # defined before the body is read: a function may call itself
        if self._set_aside is not None and name not in self._set_aside:
            self._make_certain(self._defined, name)
        self._inner(node, depth)
        called = {command.words[0].static for command in self.commands[before:]}
        # a name may be defined twice, and either body may be the one that is
        # called
        self._functions[name] = self._functions.get(name, frozenset()) | {
            each for each in called if each
        }

    def _command(self, node: Node) -> None:
        words: list[Word] = []
        own: list[Assignment] = []
        # A declaration's own name, such as `export`, is no named node.
        for child in node.children:
            match child.type:
                case "variable_assignment" if node.type == "command":
                    own.append(self._assignment(child))
                case "variable_assignment":
                    words.append(
                        Word(
                            raw=text_of(child),
                            values=(text_of(child.children[0]) + "=",),
                        )
                    )
                case "command_name":
                    words.append(self._reader.read(child.children[0]))
                case (
                    "file_redirect"
                    | "herestring_redirect"
                    | "heredoc_redirect"
                    | "comment"
                ):
                    pass
                case (
                    "variable_name"
                    | "export"
                    | "declare"
                    | "local"
                    | "readonly"
                    | "typeset"
                    | "unset"
                    | "unsetenv"
                ):
                    words.append(Word(raw=text_of(child), values=(text_of(child),)))
                case "regex":  # to the shell it is words, and ends where words do
                    raise ShellSyntaxError(
                        f"the argument {text_of(child)!r:.80} cannot be read; put quotes around it"
                    )
                case _:
                    words.append(self._reader.read(child))
        # a function counts only where it is certainly defined; else the program
        # of that name may run
        called = (
            bool(words) and not words[0].is_pattern and words[0].static in self._defined
        )
        self.commands.append(
            SimpleCommand(
                words=tuple(words),
                assignments=tuple(own),
                is_function=called,
                statement=_statement_of(node),
            )
        )
        self.arithmetic.take_command(self.commands[-1])

    def _assignment(self, node: Node) -> Assignment:
        name, value = node.children[0], node.children[-1]
        # `+=` adds to a value, and an element of an array is no plain variable
        known = value.type in _WORDS and "+=" not in {
            child.type for child in node.children
        }
        if name.type == "subscript":
            name, known = name.children[0], False
        if known:
            word = self._reader.read(value)
        else:
            word = Word(raw=text_of(node), values=(HOLE,))
        self.arithmetic.take_value(
            text_of(name), value if value.type in _WORDS else None
        )
        return Assignment(name=text_of(name), value=word)

    def _file_redirect(self, node: Node) -> None:
        operator = next(
            (child.type for child in node.children if not child.is_named), ""
        )
        targets = [
            child for child in node.named_children if child.type != "file_descriptor"
        ]
        # One without a target closes a handle.
        self._redirects += [
            Redirect(operator=operator, target=self._reader.read(each))
            for each in targets
        ]
        # A grammar may take words behind a redirection for further targets: they are arguments of the command.
        if len(targets) > 1:
            raise ShellSyntaxError(
                f"words behind the redirection {text_of(targets[0])!r:.80}; put it at the end"
            )

    def _loop(self, node: Node) -> None:
        """A loop's variable may be any of its words."""
        names = [
            child for child in node.named_children if child.type == "variable_name"
        ]
        values = [child for child in node.named_children if child.type in _WORDS]
        for name in names:
            for value in values:
                word = self._reader.read(value)
                self.assignments.append(Assignment(name=text_of(name), value=word))
                self.arithmetic.take_value(
                    text_of(name), None if word.is_pattern else value
                )
            # without words a loop runs over the arguments, which nobody knows
            if not values:
                self.assignments.append(
                    Assignment(name=text_of(name), value=Word(raw="", values=(HOLE,)))
                )
                self.arithmetic.take_value(text_of(name), None)
            self._make_certain(self._certain, text_of(name))

    def _expansion(self, text: str) -> None:
        """Take an expansion in braces, wherever it stands."""
        # these expand a value once more, as a prompt, with escapes or as another
        # name
        if "@P" in text or "@E" in text or text.startswith("${!"):
            raise ShellSyntaxError(f"{text!r:.80} may run what a variable holds")
        if re.search(r"\n|(?<!\$)\{", text[2:]):
            raise ShellSyntaxError(f"where {text!r:.80} ends cannot be read")
        default = re.match(r"\$\{(\w+):?=", text)
        if default is not None:
            self.defaults.add(default[1])


def _where(node: Node) -> str:
    """Say where the first fault is."""
    while not (node.is_error or node.is_missing):
        faulty = next((child for child in node.children if child.has_error), None)
        if faulty is None:
            break
        node = faulty
    return (
        f" (at line {node.start_point.row + 1}, column {node.start_point.column + 1})"
    )


@cache
def _parser() -> Parser:
    # Few sessions have a shell, and the grammar is a large table.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _statement_of(node: Node) -> int | None:
    """Return where the statement begins that a command is a plain part of; `None` where it is none."""
    parent = node.parent
    if parent is not None and parent.type == "redirected_statement":
        return None  # its files are opened before it runs
    while parent is not None and parent.type != "program":
        if parent.type == "list":
            # a part behind `||` runs only where the one before it failed
            is_skipped = node != parent.children[0]
            if is_skipped and any(child.type == "||" for child in parent.children):
                return None
        elif parent.type not in ("negated_command", "redirected_statement"):
            return None
        node, parent = parent, parent.parent
    following = node.next_sibling
    if following is not None and following.type == "&":
        return None
    return node.start_byte
