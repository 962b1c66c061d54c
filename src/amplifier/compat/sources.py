"""What a module's source says of it: whether it is the original's, and what it needs of the event loop.

Nothing is run. The source of a package is read once in a process.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final

import anyio
import attrs

from amplifier_sdk.errors import ModuleLoadError

__all__ = ["ASYNCIO_ONLY", "ModuleImport", "ModuleSources", "imports_of"]

ASYNCIO_ONLY: Final = frozenset(
    {
        "aioboto3",
        "aiobotocore",
        "aiofiles",
        "aiohttp",
        "aiomysql",
        "aiopg",
        "aioredis",
        "aiosqlite",
        "asyncio",
        "asyncpg",
        "nest_asyncio",
        "uvloop",
        "websockets",
    }
)
"""Packages that need asyncio's event loop."""

_IMPORTS_ORIGINAL: Final = re.compile(
    rb"^[ \t]*(?:from|import)[ \t]+amplifier_core\b", re.MULTILINE
)


@attrs.frozen
class ModuleImport:
    """One name that a module imports: `name` of `module`, or the module itself where `name` is `None`."""

    module: str
    name: str | None
    file: Path
    line: int


@attrs.frozen
class ModuleSources:
    """The source files of a module."""

    name: str
    files: tuple[Path, ...]
    is_original: bool

    @classmethod
    def of(cls, package: ModuleType) -> ModuleSources:
        """Read the source of an imported package."""
        return _sources_of(package.__name__, getattr(package, "__file__", None))

    @classmethod
    def at(cls, path: Path) -> ModuleSources:
        """Read the source below a folder, or that of one file."""
        files = tuple(_files(path))
        is_original = any(
            _IMPORTS_ORIGINAL.search(file.read_bytes()) is not None for file in files
        )
        return cls(path.name, files, is_original)

    def imports(self) -> Iterator[ModuleImport]:
        """Yield what the module imports, in the order of its files and lines."""
        for file in self.files:
            yield from imports_of(file)

    def needs_asyncio(self) -> ModuleImport | None:
        """Return the first import of a package that needs asyncio's event loop."""
        for found in self.imports():
            if found.module.partition(".")[0] in ASYNCIO_ONLY:
                return found
        return None

    def check_backend(self, module_id: str, distribution: str | None) -> None:
        """Refuse on trio what needs asyncio.

        Raises:
            ModuleLoadError: the module imports such a package; the message has the line that changes the backend.
        """
        if "trio" not in type(anyio.CancelScope()).__module__:
            return
        found = self.needs_asyncio()
        if found is None:
            return
        raise ModuleLoadError(
            module_id,
            f"it imports {found.module!r} ({found.file.name}:{found.line}) and so runs on asyncio alone;"
            " run the session there: anyio.run(main, backend='asyncio')",
            distribution=distribution,
        )


@lru_cache(maxsize=256)
def _sources_of(name: str, file: str | None) -> ModuleSources:
    if file is None:
        return ModuleSources(name, (), is_original=False)
    path = Path(file)
    if path.name == "__init__.py":
        path = path.parent
    # an entry point may name a module inside its package
    for parent in path.parents:
        if parent.name.startswith("amplifier_module_"):
            path = parent
    return ModuleSources.at(path)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    else:
        # sorted, so that every machine names the same first place
        yield from sorted(path.rglob("*.py"))


def imports_of(file: Path) -> Iterator[ModuleImport]:
    """Yield what a file imports when it runs, wherever in it; what only type checkers see is left out."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # a broken file is reported when it is imported
    yield from _imports_in(tree, file)


def _imports_in(node: ast.AST, file: Path) -> Iterator[ModuleImport]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for part in child.orelse:
                yield from _imports_in(part, file)
            continue
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield ModuleImport(alias.name, None, file, child.lineno)
        elif isinstance(child, ast.ImportFrom) and child.module and not child.level:
            for alias in child.names:
                yield ModuleImport(child.module, alias.name, file, child.lineno)
        yield from _imports_in(child, file)
