"""The check of a module of the original: what it imports, what of that exists, what differs, where it runs.

Nothing of the module is run or imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import attrs

from amplifier.compat.differences import FoundDifference, differences_in
from amplifier.compat.finder import NAME
from amplifier.compat.sources import ModuleImport, ModuleSources
from amplifier.kernel.modules.catalog import Catalog
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ModuleNotFoundError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["CheckedImport", "CompatReport", "check_module", "locate"]

_ORIGINAL: Final = Path(__file__).with_name("original")
_SKIPPED: Final = frozenset({"build", "dist", "tests", "test", ".venv", "venv"})
"""Folders of a project that are not the module itself."""


@attrs.frozen
class CheckedImport:
    """A name of the original that a module imports, and whether it is provided."""

    module: str
    name: str | None
    file: Path
    line: int
    exists: bool

    @property
    def text(self) -> str:
        """The name as one text."""
        return self.module if self.name is None else f"{self.module}.{self.name}"


@attrs.frozen
class CompatReport:
    """What was found out about a module.

    `needs_asyncio` is the first import because of which it runs on asyncio alone; `None` where there is none.
    """

    path: Path
    is_original: bool
    imports: tuple[CheckedImport, ...]
    differences: tuple[FoundDifference, ...]
    needs_asyncio: ModuleImport | None

    @property
    def missing(self) -> tuple[CheckedImport, ...]:
        """The names that are not provided."""
        return tuple(found for found in self.imports if not found.exists)

    @property
    def passed(self) -> bool:
        """Whether every name that it imports is provided."""
        return not self.missing

    @property
    def backends(self) -> tuple[str, ...]:
        """The event loops on which it runs."""
        return ("asyncio",) if self.needs_asyncio else ("asyncio", "trio")

    def to_dict(self) -> JSONObject:
        """Write the report as JSON data."""
        needs = self.needs_asyncio
        return {
            "path": str(self.path),
            "passed": self.passed,
            "is_original": self.is_original,
            "imports": [
                {
                    "name": found.text,
                    "exists": found.exists,
                    "file": str(found.file),
                    "line": found.line,
                }
                for found in self.imports
            ],
            "differences": [to_json(found) for found in self.differences],
            "backends": list(self.backends),
            "asyncio_because_of": None if needs is None else needs.module,
        }


def locate(name: str) -> Path:
    """Return the folder or file of a module, which is given as a path or as the id of an installed one.

    Raises:
        ModuleNotFoundError: there is neither.
    """
    path = Path(name)
    if path.exists():
        return path
    found = Catalog(None, None).find(name)
    if found is None:
        raise ModuleNotFoundError(
            name, "neither a path nor an installed module; see 'amplifier module list'"
        )
    top = found.package.partition(".")[0]
    spec = PathFinder.find_spec(top, None if found.root is None else [found.root])
    if spec is None:
        raise ModuleNotFoundError(name, f"its package {top!r} cannot be found")
    if spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0])
    return Path(str(spec.origin))


def check_module(path: Path) -> CompatReport:
    """Check the module at a path: a project's folder, a package's, or one file."""
    given = ModuleSources.at(path)
    own = tuple(
        file
        for file in given.files
        if not _SKIPPED.intersection(file.relative_to(path).parts[:-1])
    )
    sources = attrs.evolve(given, files=own)
    return CompatReport(
        path,
        sources.is_original,
        tuple(_imports(sources)),
        tuple(_differences(sources)),
        sources.needs_asyncio(),
    )


def _imports(sources: ModuleSources) -> Iterator[CheckedImport]:
    """Yield each name of the original once, with the first place that imports it."""
    seen: set[tuple[str, str | None]] = set()
    for found in sources.imports():
        key = (found.module, found.name)
        if found.module.partition(".")[0] != NAME or key in seen:
            continue
        seen.add(key)
        yield CheckedImport(
            found.module, found.name, found.file, found.line, exists=_exists(*key)
        )


def _differences(sources: ModuleSources) -> Iterator[FoundDifference]:
    seen: set[str] = set()
    for file in sources.files:
        for found in differences_in(file):
            if found.name not in seen:
                seen.add(found.name)
                yield found


def _exists(module: str, name: str | None) -> bool:
    """Whether a module of the original, or a name of it, is provided."""
    names = _names_of(module)
    if names is None:
        return False
    return name is None or name in names or _names_of(f"{module}.{name}") is not None


@cache
def _names_of(module: str) -> frozenset[str] | None:
    """Return the public names of a module of the original; `None` where it is not provided."""
    parts = module.split(".")[1:]
    place = _ORIGINAL.joinpath(*parts)
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not parts:  # the package itself
        file = _ORIGINAL / "__init__.py"
    if not file.is_file():
        return None
    for node in ast.parse(file.read_bytes()).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return frozenset(ast.literal_eval(value)) | {"__file__", "__version__"}
            case _:
                continue
    return frozenset()
