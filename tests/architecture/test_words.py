"""Names use the words of the field, as texts do: none has a word that was given up for another."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.architecture.source_tree import SourceFile, source_files

WORDS: Final = {
    "circle": "cycle",
    "judge": "evaluate, policy",
    "judged": "evaluated",
    "patience": "timeout",
    "shelf": "store",
    "spot": "resolved path",
    "teller": "notifier",
    "telling": "reporting",
    "told": "message, problem, reported",
}
"""Each word with what to write instead."""

PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def _names(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield what a file names, with the line: classes, functions, arguments and variables."""
    for node in file.nodes:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield node.lineno, name
            case ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


def test_no_name_has_a_word_that_was_given_up() -> None:
    found = [
        f"{file}:{line}: {name}; write: {WORDS[part]}"
        for file in source_files()
        for line, name in _names(file)
        for part in map(str.lower, PART.findall(name))
        if part in WORDS
    ]

    assert found == []
