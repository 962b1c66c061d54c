"""Modules written for another kernel: what provides the package that they import, and what adapts them.

Nothing of that is imported before somebody imports the package's name. Until then a finder stands among Python's,
which compares names.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from amplifier.kernel.modules.shapes import (
        ImportedModule,
    )  # a test run needs the finder alone

__all__ = ["FINDER", "adapted", "provide"]

ADAPTERS: Final = {"amplifier_core": "amplifier.compat.adapter"}
"""The packages that modules written for another kernel import, and who provides each and adapts those modules."""


HINT: Final = "ModuleCoordinator"
"""What modules for another kernel call the coordinator; such a module's source is then asked what it imports."""


class _Adapter(Protocol):
    """What the module of an adapter has."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None: ...

    def adapt(self, imported: ImportedModule) -> ImportedModule: ...


class _AdapterFinder:
    """Asks an adapter for the package that it provides."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find a package that an adapter provides; other names are left to other finders."""
        name = ADAPTERS.get(fullname.partition(".")[0])
        if name is None:
            return None
        return _adapter(name).find_spec(fullname, path, target)


FINDER: Final = _AdapterFinder()


def provide() -> None:
    """Let modules that are imported from here on import the packages of the table."""
    if FINDER not in sys.meta_path:
        # first, before an installed package of such a name
        sys.meta_path.insert(0, FINDER)


def adapted(imported: ImportedModule) -> ImportedModule:
    """Return a module as sessions mount it.

    Raises:
        ModuleLoadError: it is written for another kernel, which is imported itself.
    """
    for package, name in ADAPTERS.items():
        # most processes have imported no such package
        if package in sys.modules or _is_hinted(imported.target):
            imported = _adapter(name).adapt(imported)
    return imported


def _is_hinted(target: object) -> bool:
    """Whether a mount function is annotated as those are that import the package for type checkers alone."""
    mount = getattr(target, "mount", target)
    annotations: object = getattr(mount, "__annotations__", None)
    return isinstance(annotations, Mapping) and HINT in annotations.values()


def _adapter(name: str) -> _Adapter:
    return cast("_Adapter", import_module(name))
