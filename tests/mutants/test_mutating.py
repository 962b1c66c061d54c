"""Sources that are broken in one place each."""

from __future__ import annotations

import ast

from tests.mutants.mutating import mutants_of

SOURCE = """
def larger(left, right):
    note(left)
    if left < right and right:
        return right
    return left
"""


def test_each_mutant_has_one_fault_of_its_own() -> None:
    sources = [mutant.source for mutant in mutants_of(SOURCE)]

    assert len(set(sources)) == len(sources)
    for source in sources:
        assert source != ast.unparse(ast.parse(SOURCE))


def test_conditions_values_and_calls_are_broken() -> None:
    changes: dict[int, list[str]] = {mutant.line: [] for mutant in mutants_of(SOURCE)}
    for mutant in mutants_of(SOURCE):
        changes[mutant.line].append(mutant.change)

    assert changes[3] == ["note(left) -> pass"]
    assert "left < right -> left <= right" in changes[4]
    assert "left < right and right -> left < right or right" in changes[4]
    assert changes[6] == ["return left -> return None"]
