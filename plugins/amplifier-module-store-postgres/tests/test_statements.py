"""No statement is put together from what somebody wrote: each is a constant, and values go beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import amplifier_module_store_postgres

SOURCE: Final = Path(amplifier_module_store_postgres.__file__).parent
FILES: Final = sorted(SOURCE.glob("*.py"))
RUNS: Final = ("execute", "executemany", "copy", "stream")


def statements(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is given to the methods that run a statement."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in RUNS
        ):
            yield node.args[0]


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return what the constants of a module are."""
    return {
        node.target.id: node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value is not None
        and ast.unparse(node.annotation) == "Final"
    }


def is_constant(node: ast.expr, known: dict[str, ast.expr]) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name in known and is_constant(known[name], known)
        case ast.JoinedStr(values=values):
            return all(
                is_constant(
                    one.value if isinstance(one, ast.FormattedValue) else one, known
                )
                for one in values
            )
        case _:
            return False


def is_composed(node: ast.expr) -> bool:
    """Tell whether psycopg composes it: a constant text with names that it quotes."""
    return ast.unparse(node) == "sql.SQL('LISTEN {}').format(sql.Identifier(CHANNEL))"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_statement_is_a_constant(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    known = constants(tree)
    other = [
        f"{file.name}:{node.lineno}: {ast.unparse(node)}"
        for node in statements(tree)
        if not is_constant(node, known) and not is_composed(node)
    ]

    # the steps of migrations are constants of their module, one after the other
    assert [each for each in other if "step.encode()" not in each] == []


def test_there_are_statements_to_look_at() -> None:
    found = [node for file in FILES for node in statements(ast.parse(file.read_text()))]
    variable = "UPDATE t SET name = '{name}'"

    assert len(found) > 25
    assert not is_constant(ast.parse(f'f"{variable}"', mode="eval").body, {})
    assert not is_constant(ast.parse('"a" + name', mode="eval").body, {})
