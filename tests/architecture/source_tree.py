"""The source tree as the architecture tests read it: its files, what each imports and what each defines."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

import attrs
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = [
    "PLUGINS",
    "ROOT",
    "Import",
    "SourceFile",
    "distributions_of",
    "is_inside",
    "plugin_files",
    "requirements_of",
    "root_files",
    "source_files",
]

ROOT: Final = Path(__file__).resolve().parents[2]
PLUGINS: Final = tuple(
    sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))
)
"""The folder of each plugin."""


@attrs.frozen(kw_only=True)
class Import:
    """One imported name: the module or attribute it may be, and how it is imported."""

    name: str
    line: int
    lazy: bool  # inside a function
    typing_only: bool  # under `if TYPE_CHECKING:`

    @property
    def root(self) -> str:
        """The top-level package."""
        return self.name.partition(".")[0]

    @property
    def is_stdlib(self) -> bool:
        """Whether the standard library has it."""
        return self.root in sys.stdlib_module_names


@attrs.frozen(kw_only=True)
class SourceFile:
    """One module of `src` or of a plugin's `src`."""

    module: str
    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def is_package(self) -> bool:
        """Whether the file is a package's `__init__`."""
        return self.path.name == "__init__.py"

    @property
    def is_public(self) -> bool:
        """Whether no part of the module's name is private."""
        return not any(part.startswith("_") for part in self.module.split("."))

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.path.read_bytes(), filename=str(self.path))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All that stands in the source; several rules read it."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every imported name; `from a import b` counts as `a.b`."""
        return tuple(_imports(self.tree, self._package, lazy=False, typing_only=False))

    @property
    def _package(self) -> str:
        return self.module if self.is_package else self.module.rpartition(".")[0]


def _imports(
    node: ast.AST, package: str, *, lazy: bool, typing_only: bool
) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield Import(
                    name=alias.name,
                    line=node.lineno,
                    lazy=lazy,
                    typing_only=typing_only,
                )
        case ast.ImportFrom(names=names):
            base = _absolute(node, package)
            for alias in names:
                yield Import(
                    name=f"{base}.{alias.name}",
                    line=node.lineno,
                    lazy=lazy,
                    typing_only=typing_only,
                )
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            for statement in node.body:
                yield from _imports(statement, package, lazy=lazy, typing_only=True)
            for statement in node.orelse:
                yield from _imports(
                    statement, package, lazy=lazy, typing_only=typing_only
                )
        case _:
            inner = lazy or isinstance(
                node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
            )
            for child in ast.iter_child_nodes(node):
                yield from _imports(child, package, lazy=inner, typing_only=typing_only)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parents = parts[: len(parts) - node.level + 1]
    return ".".join([*parents, node.module] if node.module else parents)


def _files_under(folder: Path) -> Iterator[SourceFile]:
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        yield SourceFile(
            module=".".join(parts[:-1] if parts[-1] == "__init__" else parts), path=path
        )


@cache
def root_files() -> tuple[SourceFile, ...]:
    """Return the modules of the root distribution."""
    return tuple(_files_under(ROOT / "src"))


@cache
def plugin_files(plugin: Path) -> tuple[SourceFile, ...]:
    """Return the modules of one plugin."""
    return tuple(_files_under(plugin / "src"))


@cache
def source_files() -> tuple[SourceFile, ...]:
    """Return every module that is shipped."""
    return (
        *root_files(),
        *(file for plugin in PLUGINS for file in plugin_files(plugin)),
    )


def is_inside(name: str, package: str) -> bool:
    """Whether a dotted name is the package or something in it."""
    return name == package or name.startswith(f"{package}.")


def requirements_of(project: Path) -> tuple[Requirement, ...]:
    """Return what the `pyproject.toml` of a folder requires, extras apart."""
    data: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
        (project / "pyproject.toml").read_text("utf-8")
    )
    return tuple(Requirement(text) for text in data["project"].get("dependencies", []))


def distributions_of(package: str) -> frozenset[str]:
    """Return the canonical names of the distributions that install a top-level package; else the package's own."""
    return frozenset(map(canonicalize_name, _installed().get(package, [package])))


@cache
def _installed() -> Mapping[str, list[str]]:
    return packages_distributions()
