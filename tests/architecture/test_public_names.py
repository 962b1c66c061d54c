"""`__all__` is the whole public surface, and the lazy roots are what they say.

Public is every function, class and alias without an underscore, and every constant that another module uses; a
constant of one module's own needs no underscore.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final

import pytest

from tests.architecture.source_tree import SourceFile, is_inside, source_files

PUBLIC: Final = tuple(file for file in source_files() if file.is_public)
LAZY: Final = tuple(
    file
    for file in PUBLIC
    if file.is_package and "__getattr__" in file.path.read_text("utf-8")
)
MACHINERY: Final = frozenset({"annotations", "load_from"})
TYPE_VARIABLES: Final = frozenset({"ParamSpec", "TypeVar", "TypeVarTuple"})


@cache
def _imported() -> frozenset[str]:
    """Return every name that some module imports."""
    return frozenset(name.name for file in source_files() for name in file.imports)


def _exported(file: SourceFile) -> list[str] | None:
    for node in file.tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(
                    target=ast.Name(id="__all__"), value=ast.expr() as value
                )
            ):
                return list(ast.literal_eval(value))
            case _:
                continue
    return None


def _defined(file: SourceFile) -> Iterator[str]:
    """Yield the public names that a module defines; a package's also those it re-exports."""
    for node in file.tree.body:
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                yield name
            case ast.Assign(targets=targets, value=value) if not _is_type_variable(
                value
            ):
                yield from (
                    target.id for target in targets if isinstance(target, ast.Name)
                )
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.ImportFrom(names=names) if file.is_package:
                yield from (
                    alias.asname or alias.name
                    for alias in names
                    if alias.name not in MACHINERY
                )
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body) if file in LAZY:
                yield from (
                    alias.name
                    for n in body
                    if isinstance(n, ast.ImportFrom)
                    for alias in n.names
                )
            case ast.If(
                test=ast.Name(id="TYPE_CHECKING"), orelse=[ast.Assign(), *_] as orelse
            ):
                for other in (n for n in orelse if isinstance(n, ast.Assign)):
                    yield from (
                        target.id
                        for target in other.targets
                        if isinstance(target, ast.Name)
                    )
            case _:
                continue


def _is_type_variable(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in TYPE_VARIABLES
    )


def _public(names: Iterator[str]) -> set[str]:
    typing_machinery = {"TYPE_CHECKING"}
    return {name for name in names if not name.startswith("_")} - typing_machinery


def _order(name: str) -> tuple[int, list[tuple[int, str]]]:
    """Sort constants, then classes, then the rest, numbers by value: the order ruff keeps."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, [
        (int(part), "") if part.isdigit() else (0, part)
        for part in re.split(r"(\d+)", name)
    ]


def _misstated(file: SourceFile) -> Iterator[str]:
    """Yield what `__all__` has too much or too little."""
    defined = _public(_defined(file))
    exported = set(_exported(file) or ()) - {"__version__"}
    if is_inside(file.module, "amplifier.compat.original"):
        # each stands for a module of the original, and some of what it offers is ours
        defined |= {name.name.rpartition(".")[2] for name in file.imports} & exported
    own_constants = {
        name
        for name in defined
        if name.isupper() and f"{file.module}.{name}" not in _imported()
    }
    yield from (
        f"{file} exports {name}, which it does not define"
        for name in sorted(exported - defined)
    )
    yield from (
        f"{file} does not export {name}"
        for name in sorted(defined - exported - own_constants)
    )


def test_all_lists_exactly_the_public_names() -> None:
    assert [breach for file in PUBLIC for breach in _misstated(file)] == []


def _is_in_order(exported: list[str]) -> bool:
    return exported == sorted(set(exported), key=_order)


def test_all_is_sorted_and_names_nothing_twice() -> None:
    assert [
        str(file) for file in PUBLIC if not _is_in_order(_exported(file) or [])
    ] == []


def test_the_roots_are_lazy() -> None:
    assert {"amplifier", "amplifier_sdk"} <= {file.module for file in LAZY}


@pytest.mark.parametrize("file", LAZY, ids=str)
def test_a_lazy_package_says_the_same_three_times(file: SourceFile) -> None:
    for_checkers = {
        alias.name: node.module
        for block in file.tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    at_run_time = {name: f"{file.module}.{home}" for name, home in _table(file).items()}

    assert at_run_time == for_checkers
    assert sorted(at_run_time) == sorted(set(_exported(file) or ()) - {"__version__"})


def _table(file: SourceFile) -> dict[str, str]:
    tables = [
        ast.literal_eval(node.value)
        for node in file.tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and isinstance(node.value, ast.Dict)
    ]
    assert len(tables) == 1, "a lazy package has one table of names and homes"
    return {name: str(home) for home, names in tables[0].items() for name in names}


@pytest.mark.parametrize("file", LAZY, ids=str)
def test_every_name_of_a_lazy_package_loads(file: SourceFile) -> None:
    package = import_module(file.module)
    exported = _exported(file) or []

    assert [name for name in exported if not hasattr(package, name)] == []
    assert set(exported) <= set(dir(package))


@pytest.mark.parametrize("file", LAZY, ids=str)
def test_a_lazy_package_refuses_an_unknown_name(file: SourceFile) -> None:
    with pytest.raises(
        AttributeError,
        match=f"module '{re.escape(file.module)}' has no attribute 'Sesion'",
    ):
        _ = import_module(file.module).Sesion
