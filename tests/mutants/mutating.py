"""One small fault in a source file: what tests of it must notice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Final

import attrs

__all__ = ["Mutant", "mutants_of"]

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
"""Each comparison and what it becomes."""


@attrs.frozen(kw_only=True)
class Mutant:
    """A source with one fault.

    Args:
        line: where the fault is.
        change: what was written there, and what is now.
        source: the whole file.
    """

    line: int
    change: str
    source: str


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield the source with each fault that it can have: a wrong comparison, condition, value or a missing call."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        if _faulty(node) is None:
            continue
        broken = copy.deepcopy(tree)
        place = list(ast.walk(broken))[number]
        replacement = _faulty(place)
        assert replacement is not None
        change = f"{ast.unparse(node)} -> {ast.unparse(replacement)}"
        _Replace(place, replacement).visit(broken)
        yield Mutant(
            line=getattr(node, "lineno", 0),
            change=change,
            source=ast.unparse(ast.fix_missing_locations(broken)),
        )


def _faulty(node: ast.AST) -> ast.AST | None:
    """Return what a node becomes, or nothing if it stays as it is."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=comparators) if (
            type(operator) in COMPARISONS
        ):
            return ast.Compare(
                left=left, ops=[COMPARISONS[type(operator)]()], comparators=comparators
            )
        case ast.If(test=test, body=body, orelse=orelse) if not _is_for_types(test):
            return ast.If(
                test=ast.UnaryOp(op=ast.Not(), operand=test), body=body, orelse=orelse
            )
        case ast.BoolOp(op=ast.And(), values=values):
            return ast.BoolOp(op=ast.Or(), values=values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return ast.BoolOp(op=ast.And(), values=values)
        case ast.Return(value=ast.expr() as value) if not isinstance(
            value, ast.Constant
        ):
            return ast.Return(value=ast.Constant(value=None))
        case ast.Expr(value=ast.Call() | ast.Await()):
            return ast.Pass()
        case _:
            return None


def _is_for_types(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in ast.unparse(test)


class _Replace(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._old:
            return self._new
        return self.generic_visit(node)
