"""What this interpreter and the search paths offer: the modules of installed distributions and of projects."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from amplifier.kernel.modules.sources import (
    FOLDER_PREFIX,
    GROUP,
    PACKAGE_PREFIX,
    SEARCH_VARIABLE,
    FoundModule,
    installed_modules,
    offered_by,
    project_folders,
    the_only,
)
from amplifier.kernel.reports import report
from amplifier_sdk.errors import ModuleLoadError

__all__ = ["Catalog"]


class Catalog:
    """The modules that are found by their metadata; nothing is imported.

    Args:
        search_paths: folders with `amplifier-module-*` folders in them; default those of the environment
            variable `AMPLIFIER_MODULES`.
        path: where installed modules are searched; default `sys.path`.
    """

    def __init__(
        self,
        search_paths: Sequence[str | os.PathLike[str]] | None,
        path: Sequence[str] | None,
    ) -> None:
        if search_paths is None:
            self._folders = None
        else:
            self._folders = tuple(os.path.abspath(folder) for folder in search_paths)
        self._path = path
        self._beside: tuple[FoundModule, ...] | None = None
        self._unreadable: dict[str, ModuleLoadError] = {}

    def modules(self) -> tuple[FoundModule, ...]:
        """Return every module; a project that is installed as well is there twice."""
        # projects are edited while a process runs; installed modules hardly ever are
        return (*installed_modules(self._path), *self._in_projects(refresh=True))

    def find(self, module_id: str) -> FoundModule | None:
        """Return the one module of an id, or `None`.

        Raises:
            ModuleConflictError: two distributions or projects offer it.
            ModuleLoadError: it is a project whose `pyproject.toml` cannot be read.
        """
        return the_only(module_id, self._matches(module_id))

    def places(self) -> str:
        """Say where is searched."""
        folders = len(sys.path if self._path is None else self._path)
        projects = self._search_paths()
        if projects:
            beside = (
                f" and the folders '{FOLDER_PREFIX}*' in {os.pathsep.join(projects)}"
            )
        else:
            beside = ""
        return f"the entry points of group {GROUP!r} in {folders} folders{beside}"

    def _matches(self, module_id: str) -> list[FoundModule]:
        for refresh in (False, True):  # it may be there since the last look
            installed = [
                found
                for found in installed_modules(self._path, refresh=refresh)
                if found.id == module_id
            ]
            beside = [
                found
                for found in self._in_projects(refresh=refresh)
                if found.id == module_id
            ]
            # a broken project must not be silently replaced by another of its id
            if module_id in self._unreadable:
                raise self._unreadable[module_id]
            if installed or beside:
                break
        else:
            if self._path is None:
                return list(_importable(module_id))
            return []
        # A project that is installed from its folder is one module, found twice.
        return [
            *installed,
            *(
                found
                for found in beside
                if not any(_is_same(found, other) for other in installed)
            ),
        ]

    def _in_projects(self, *, refresh: bool) -> tuple[FoundModule, ...]:
        """Return what the search paths offer, as far as it can be read."""
        if self._beside is None or refresh:
            paths = self._search_paths()
            for path in paths:
                if not os.path.isdir(path):
                    report("module.search_path_missing", path=path)
            self._unreadable.clear()
            self._beside = tuple(
                found
                for folder in project_folders(paths)
                for found in self._offered(folder)
            )
        return self._beside

    def _offered(self, folder: str) -> tuple[FoundModule, ...]:
        try:
            return offered_by(folder)
        except ModuleLoadError as error:
            # raised when it is asked for: others must stay usable beside it
            self._unreadable[error.module_id] = error
            report("module.folder_unreadable", error, folder=folder)
            return ()

    def _search_paths(self) -> tuple[str, ...]:
        if self._folders is not None:
            return self._folders
        listed = os.environ.get(SEARCH_VARIABLE, "").split(os.pathsep)
        return tuple(os.path.abspath(folder) for folder in listed if folder)


def _importable(module_id: str) -> Iterator[FoundModule]:
    """Yield the package of a module that can be imported though no distribution offers it."""
    from importlib.util import find_spec  # only for what has no metadata

    package = PACKAGE_PREFIX + module_id.replace("-", "_")
    if package.isidentifier() and (spec := find_spec(package)) is not None:
        yield FoundModule(module_id, package, package, spec.origin or package)


def _is_same(found: FoundModule, installed: FoundModule) -> bool:
    """Whether an installed module is the project that a search path holds."""
    from importlib.util import find_spec  # only where there are search paths

    spec = None
    if installed.package:
        spec = find_spec(installed.package.partition(".")[0])
    if spec is None:
        places = []
    else:
        places = [*(spec.submodule_search_locations or ()), spec.origin]
    # a search path may lead to the same folder through a link
    root = os.path.realpath(found.root or found.path)
    return any(
        place is not None and os.path.dirname(os.path.realpath(place)) == root
        for place in places
    )
