"""A broad `except` stands at a wall to foreign code and says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from tests.architecture.source_tree import SourceFile, source_files

ORDINARY: Final = frozenset({"Exception"})
EVERYTHING: Final = frozenset({"BaseException", "BaseExceptionGroup"})

RAISED_LATER: Final = {
    "src/amplifier/kernel/cleanups.py": "what is left must be released first; then the cancellation is raised",
}
"""Each file that keeps a cancellation for a moment, with its reason."""


def _handlers(file: SourceFile) -> Iterator[tuple[ast.ExceptHandler, set[str]]]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ExceptHandler):
            yield node, _caught(node.type)


def _caught(kind: ast.expr | None) -> set[str]:
    match kind:
        case None:
            return {"BaseException"}
        case ast.Tuple(elts=kinds):
            return {name for part in kinds for name in _caught(part)}
        case _:
            return {ast.unparse(kind).rpartition(".")[2]}


def _ends_in_raise(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


@pytest.mark.parametrize("file", source_files(), ids=str)
def test_a_broad_except_gives_its_reason_beside_it(file: SourceFile) -> None:
    lines = file.path.read_text("utf-8").splitlines()
    silent = [
        f"{file}:{handler.lineno}"
        for handler, caught in _handlers(file)
        if caught & (ORDINARY | EVERYTHING) and not _ends_in_raise(handler)
        if not any("# " in line for line in lines[handler.lineno - 1 : handler.body[0].lineno])
    ]

    assert silent == []


def _swallows_cancellation(file: SourceFile) -> list[int]:
    return [
        handler.lineno for handler, caught in _handlers(file) if caught & EVERYTHING and not _ends_in_raise(handler)
    ]


@pytest.mark.parametrize("file", source_files(), ids=str)
def test_a_cancellation_is_raised_again_where_it_is_caught(file: SourceFile) -> None:
    if str(file) in RAISED_LATER:
        return

    assert _swallows_cancellation(file) == []


def test_every_exception_is_still_needed() -> None:
    needed = {str(file) for file in source_files() if _swallows_cancellation(file)}

    assert sorted(RAISED_LATER.keys() - needed) == []
