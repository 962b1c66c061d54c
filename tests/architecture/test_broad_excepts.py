"""A broad `except` stands at a wall to foreign code and says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.architecture.source_tree import SourceFile, source_files

ORDINARY: Final = frozenset({"Exception"})
EVERYTHING: Final = frozenset({"BaseException", "BaseExceptionGroup"})

RAISED_LATER: Final = {
    "src/amplifier/kernel/cleanups.py": "what is left must be released first; then the cancellation is raised",
    "src/amplifier_sdk/threads.py": "what a thread's function raises is raised in the tasks that wait for it",
    "src/amplifier/kernel/foreign.py": "a wait's error is the call's that waits; the rest is closed first",
}
"""Each file that keeps a cancellation for a moment, with its reason."""


def _handlers(file: SourceFile) -> Iterator[tuple[ast.ExceptHandler, set[str]]]:
    for node in file.nodes:
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


def _without_reason(file: SourceFile) -> Iterator[str]:
    lines = file.path.read_text("utf-8").splitlines()
    for handler, caught in _handlers(file):
        if not caught & (ORDINARY | EVERYTHING) or _ends_in_raise(handler):
            continue
        if not any(
            "# " in line for line in lines[handler.lineno - 1 : handler.body[0].lineno]
        ):
            yield f"{file}:{handler.lineno}"


def test_a_broad_except_gives_its_reason_beside_it() -> None:
    assert [place for file in source_files() for place in _without_reason(file)] == []


def _swallowed_cancellations(file: SourceFile) -> list[str]:
    return [
        f"{file}:{handler.lineno}"
        for handler, caught in _handlers(file)
        if caught & EVERYTHING and not _ends_in_raise(handler)
    ]


def test_a_cancellation_is_raised_again_where_it_is_caught() -> None:
    files = [file for file in source_files() if str(file) not in RAISED_LATER]

    assert [place for file in files for place in _swallowed_cancellations(file)] == []


def test_every_exception_is_still_needed() -> None:
    needed = {str(file) for file in source_files() if _swallowed_cancellations(file)}

    assert sorted(RAISED_LATER.keys() - needed) == []
