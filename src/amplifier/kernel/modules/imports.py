"""Importing the package of a module: in a thread, with a deadline, and from the folder it was found in.

Python knows a top-level package by its name alone, so of two folders that bring one name only the first is
ever imported. Here the second is refused instead of being replaced by the first in silence. A package that
comes from a folder of its own is imported from exactly there: a finder pins its name to the folder, so that
neither the order of `sys.path` nor a file beside it that is named like another package plays a part.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from threading import Lock
from types import ModuleType
from typing import Final

import anyio
from anyio.lowlevel import RunVar

from amplifier.kernel.modules.adapters import provide
from amplifier.kernel.modules.sources import FoundModule, holds_package
from amplifier_sdk.errors import ModuleConflictError, ModuleError, ModuleLoadError
from amplifier_sdk.threads import SharedCall

__all__ = ["ImportPaths", "import_error", "import_package"]


async def import_package(found: FoundModule, timeout: float) -> ModuleType:
    """Import the package of an entry point.

    Args:
        found: the module.
        timeout: seconds; the thread of an import that takes longer is left behind.

    Raises:
        ModuleConflictError: another folder's package of this name is the one that would be, or is, imported.
        ModuleLoadError: it cannot be imported, or not in time.
    """
    package = sys.modules.get(found.package)
    # what is imported needs no thread, and most sessions are not the first
    if package is not None and not _is_loading(package):
        _check_place(found)
        return package
    running = _running_import(found)
    try:
        # the wait is cancelled and not the import, which other sessions may await
        with anyio.CancelScope(deadline=running.begun_at + timeout):
            await running.wait()
        if running.is_over:  # also where a busy event loop is late to notice it
            return running.result
    except ModuleError:
        raise
    except (Exception, SystemExit) as error:  # foreign code
        raise import_error(found, error) from error
    finally:
        if running.is_over:
            _forget(found, running)
    reason = f"importing {found.package!r} took longer than {timeout:g} s"
    raise ModuleLoadError(found.id, reason, distribution=found.distribution)


def _running_import(found: FoundModule) -> SharedCall[ModuleType]:
    """Return the import of a package that runs, or begin it.

    Threads that import one package wait for each other, and so would a thousand
    sessions for some forty threads. Its time counts from its own beginning.
    """
    imports = _IMPORTS.get(None)
    if imports is None:
        imports = {}
        _IMPORTS.set(imports)
    key = _key(found)
    running = imports.get(key)
    if running is None or running.is_over:
        name = f"import {found.package}"
        running = imports[key] = SharedCall(partial(_import, found), name=name)
    return running


def _forget(found: FoundModule, ended: SharedCall[ModuleType]) -> None:
    """Let go of an import that ended: its error refers to the session that met it."""
    imports = _IMPORTS.get({})
    if imports.get(_key(found)) is ended:
        del imports[_key(found)]


def _key(found: FoundModule) -> tuple[str, str | None, str]:
    return (found.package, found.root, found.path)


def import_error(found: FoundModule, error: BaseException) -> ModuleLoadError:
    """Name the module, what its entry point names, and what Python says."""
    reason = f"importing {found.target!r} failed: {type(error).__name__}: {error}"
    return ModuleLoadError(found.id, reason, distribution=found.distribution)


def _import(found: FoundModule) -> ModuleType:
    top = found.package.partition(".")[0]
    provide()
    if found.root is not None and top not in sys.modules:
        # a finder for this one name: on `sys.path` the folder would offer all it holds
        _PINS.pin(top, found.root)
    try:
        _check_place(found)
        package = import_module(found.package)
        _check_place(found)  # another thread may have been first
    finally:
        if top not in sys.modules:
            _PINS.unpin(top)
    return package


def _is_loading(package: ModuleType) -> bool:
    """Whether another thread still runs the package's code; importing it waits for that."""
    return bool(getattr(getattr(package, "__spec__", None), "_initializing", False))


# -- one name, one folder


def _check_place(found: FoundModule) -> None:
    """Refuse a module whose package would come from another folder than the module itself."""
    top = found.package.partition(".")[0]
    # An installed package may lie elsewhere than its metadata, unless there is one of its name beside it.
    if found.root is None:
        root = os.path.dirname(found.path)
    else:
        root = found.root
    if not holds_package(root, top):
        return
    places = _places(top)
    if not places or any(_is_in(place, root) for place in places):
        return
    raise ModuleConflictError(
        found.id,
        f"it brings the package {top!r} in {os.path.join(root, top)}, but that name is taken by"
        f" {', '.join(places)}; rename one of the packages, or use only one of the modules",
        distribution=found.distribution,
    )


def _is_in(place: str, root: str) -> bool:
    folder = os.path.dirname(place)
    return folder == root or os.path.realpath(folder) == os.path.realpath(root)


def _places(top: str) -> Sequence[str]:
    """Return where a top-level package is, or would be, imported from; none when it cannot be."""
    # only a package that is not imported yet is looked for
    from importlib.util import find_spec

    module = sys.modules.get(top)
    if module is not None:
        paths, origin = (
            getattr(module, "__path__", None),
            getattr(module, "__file__", None),
        )
    else:
        spec = find_spec(top)
        if spec is None:
            return ()
        paths, origin = spec.submodule_search_locations, spec.origin
    return tuple(paths or ()) or (origin or "Python itself",)


class _Pins:
    """Finds packages that come from folders of their own."""

    def __init__(self) -> None:
        self.roots: dict[str, str] = {}

    def pin(self, top: str, root: str) -> None:
        """Import a top-level name from a folder from now on; one that is imported stays what it is."""
        with _LOCK:
            self.roots[top] = root
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)

    def unpin(self, top: str) -> None:
        """Leave a name that could not be imported to whoever has it."""
        with _LOCK:
            self.roots.pop(top, None)

    def find_spec(
        self,
        fullname: str,
        _path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find a pinned package; everything else is left to the finders after this one."""
        root = self.roots.get(fullname)
        if root is None:
            return None
        return PathFinder.find_spec(fullname, [root], target)


_IMPORTS: Final = RunVar[dict[tuple[str, str | None, str], SharedCall[ModuleType]]](
    "amplifier_imports"
)
"""The imports of an event loop, the one that runs or ran last of each package."""

_LOCK: Final = Lock()
_PINS: Final = _Pins()
_HELD: Final[dict[str, int]] = {}
"""The folders that were added to `sys.path`, and how many sessions need each."""


class ImportPaths:
    """The folders that one session added to the end of `sys.path`, for what its modules' packages import."""

    __slots__ = ("_folders",)

    def __init__(self) -> None:
        self._folders: list[str] = []

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders, the first added first."""
        return tuple(self._folders)

    def add(self, folder: str) -> None:
        """Make what a folder holds importable until `release`; what is on the path already stays there."""
        with _LOCK:
            # somebody else's entry must still be there after `release`
            is_foreign = folder in sys.path and folder not in _HELD
            if is_foreign or folder in self._folders:
                return
            if folder not in _HELD:
                # at the end, so that a module's folder never hides what is installed
                sys.path.append(folder)
            _HELD[folder] = _HELD.get(folder, 0) + 1
            self._folders.append(folder)

    def release(self) -> None:
        """Take the folders away that no other session needs; a second call does nothing."""
        with _LOCK:
            for folder in self._folders:
                _HELD[folder] -= 1
                if not _HELD[folder]:
                    del _HELD[folder]
                    _remove(folder, sys.path)
            self._folders.clear()


def _remove(folder: str, path: list[str]) -> None:
    if folder in path:  # somebody else may have cleared it
        path.remove(folder)
