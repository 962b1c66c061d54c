"""Checks where the grammar and the shell may read a text in two ways."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from amplifier_kit.shell.scripts import ShellSyntaxError
from amplifier_kit.shell.words import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["check_certain", "check_documents", "part_of"]

_DELIMITER: Final = re.compile(r"\\?[\w.+-]+|'[\w.+-]+'|\"[\w.+-]+\"")
_DOCUMENT: Final = re.compile(r"<<(-?)[ \t]*[\\'\"]?([\w.+-]+)")
_HIDDEN: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")
_HIDDEN_PROCESS: Final = re.compile(r"[<>]\(")
"""In a word a process substitution that the grammar did not see; in quotes it is text."""

_INERT: Final = frozenset({
    "comment", "raw_string", "ansi_c_string", "`", "$(", "$((", "<(", ">(", "heredoc_start", "heredoc_end",
})  # fmt: skip
"""Leaves in which nothing is substituted."""

_CLOSE: Final = frozenset({"concatenation", "simple_expansion", "variable_assignment"})
"""Nodes whose parts stand side by side."""

_SEPARATORS: Final = frozenset({"", ";", "&", "|", "&&", "||", ";;", "(", "\n"})
"""What may stand directly before a comment."""


def check_certain(node: Node) -> None:
    """Make sure that the shell reads a node, as far as its own parts go, as the grammar does.

    Raises:
        ShellSyntaxError: that is not certain.
    """
    match node.type:
        case "test_command":
            _check_test(node)
        case "raw_string" | "ansi_c_string" if _is_literal_there(node):
            raise ShellSyntaxError(
                f"quotes within {text_of(node.parent or node)!r:.80} may be read in two ways"
            )
        case "heredoc_redirect":
            _check_document(node)
        case kind if (
            not node.children
            and kind not in _INERT
            and _hides_substitution(kind, text_of(node))
        ):
            raise ShellSyntaxError(
                f"the command holds a substitution in {text_of(node)!r:.80} that cannot be read"
            )
        case _:
            pass
    _check_gaps(node)


def check_documents(text: str) -> None:
    """Make sure that a line which ends a here-document holds nothing beside the word: only the grammar takes that.

    Raises:
        ShellSyntaxError: one has.
    """
    lines: dict[str, set[str]] = {}
    for line in text.split("\n") if "<<" in text else ():
        lines.setdefault(
            re.split(r"[ \t]", line.lstrip(" \t"), maxsplit=1)[0], set()
        ).add(line)
    for dash, name in set(_DOCUMENT.findall(text)):
        if any(
            (line.lstrip("\t") if dash else line) != name
            for line in lines.get(name, ())
        ):
            raise ShellSyntaxError(
                f"where the document of {name!r:.80} ends is not certain; give its end a line alone"
            )


def part_of(node: Node, kind: str) -> str:
    """Return the text of a node's first part of some kind, or nothing."""
    return next((text_of(child) for child in node.children if child.type == kind), "")


def _hides_substitution(kind: str, text: str) -> bool:
    """Tell whether the shell would run something in a leaf that the grammar takes for text."""
    is_quoted = kind in ("string_content", "heredoc_body", "heredoc_content")
    return _HIDDEN.search(text) is not None or (
        not is_quoted and _HIDDEN_PROCESS.search(text) is not None
    )


def _is_literal_there(node: Node) -> bool:
    """Tell whether single quotes are no quotes to the shell: within an expansion that stands in double quotes."""
    above = node.parent
    # `"${x:-'a'}"`: inside double quotes the single ones are characters to the
    # shell
    while above is not None and above.type in ("expansion", "concatenation"):
        above = above.parent
    return (
        above is not node.parent
        and above is not None
        and above.type in ("string", "heredoc_body")
    )


def _check_test(node: Node) -> None:
    """Make sure that a test is one: in single brackets `<` and `>` open files, and a bracket is a word."""
    text = text_of(node)
    is_single = not text.startswith("[[")
    is_other = "\n" in text or (is_single and re.match(r"\[\s", text) is None)
    waiting = list(node.children)
    while waiting and not is_other:
        child = waiting.pop()
        is_group = child.type == "parenthesized_expression"
        is_substitution = (
            is_group
            and child.prev_sibling is not None
            and child.prev_sibling.type in ("<", ">")
        )
        is_other = is_substitution or (
            is_single and (is_group or child.type in ("<", ">"))
        )
        waiting += child.children if child.type.endswith("_expression") else ()
    if is_other:
        raise ShellSyntaxError(
            f"{text!r:.80} is no plain test to the shell; write it as [[ … ]]"
        )


def _check_document(node: Node) -> None:
    """Make sure that a here-document ends where the shell ends it."""
    start, end = part_of(node, "heredoc_start"), part_of(node, "heredoc_end")
    if not _DELIMITER.fullmatch(start) or end != start.strip("\\'\""):
        raise ShellSyntaxError(
            f"where the document of {start!r:.80} ends cannot be read; use a plain word, <<'EOF'"
        )


def _check_gaps(node: Node) -> None:
    """Make sure that what the grammar passed over between the parts of a node is nothing that a shell runs."""
    data, end = node.text or b"", node.start_byte
    before = ""
    blank = " \t\n"
    if node.type in _CLOSE:
        blank = ""
    for child in node.children:
        # the grammar skips what it takes for white space; the shell may run what
        # it skipped
        gap = data[end - node.start_byte : child.start_byte - node.start_byte].decode(
            "utf-8", "replace"
        )
        is_text = node.type in ("string", "heredoc_body")
        if _HIDDEN.search(gap) if is_text else gap.replace("\\\n", "").strip(blank):
            raise ShellSyntaxError(
                f"the command holds {gap!r:.80}, which cannot be read"
            )
        if child.type == "comment" and not gap and before not in _SEPARATORS:
            raise ShellSyntaxError(
                f"{text_of(child)!r:.80} may be no comment; put a space before it"
            )
        end, before = child.end_byte, child.type
