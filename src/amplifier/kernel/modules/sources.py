"""Finding modules by metadata, without importing anything.

Entry points of the group `amplifier.modules` are read from the `entry_points.txt` of installed
distributions, folder by folder; reading only these files is several times faster than
`importlib.metadata.entry_points()`, which parses every group of every distribution. A folder that holds a
module's project is read in the same way: its metadata, else its `pyproject.toml`, else its package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import attrs

from amplifier_sdk.errors import (
    ModuleConflictError,
    ModuleLoadError,
    ModuleNotFoundError,
)
from amplifier_sdk.values import Value

__all__ = [
    "FOLDER_PREFIX",
    "GROUP",
    "PACKAGE_PREFIX",
    "SEARCH_VARIABLE",
    "FoundModule",
    "holds_package",
    "installed_modules",
    "module_in",
    "offered_by",
    "project_folders",
    "the_only",
]

GROUP: Final = "amplifier.modules"
"""The entry-point group in which modules stand."""

FOLDER_PREFIX: Final = "amplifier-module-"
"""How the folder of a module's project begins; the module's id follows."""

PACKAGE_PREFIX: Final = "amplifier_module_"
"""How a module's package begins; its id follows, with underscores."""

SEARCH_VARIABLE: Final = "AMPLIFIER_MODULES"
"""The environment variable with the folders that hold module projects, written as `PATH` is."""


@attrs.frozen(eq=False, repr=False)
class FoundModule(Value):
    """A module that was found: its id, what its entry point names, who offers it, where that was read.

    `root` is the folder from which its package is imported; `None` means that the interpreter knows.
    """

    id: str
    target: str
    distribution: str
    path: str
    root: str | None = None

    @property
    def package(self) -> str:
        """The name of the package that is imported, with dots."""
        return self.target.partition(":")[0].strip()

    @property
    def version(self) -> str | None:
        """The version in the name of a metadata folder, such as `my_dist-1.5.dist-info`."""
        stem, ending = os.path.splitext(os.path.basename(self.path))
        if ending in _METADATA:
            return stem.partition("-")[2].partition("-")[0] or None
        return None


_METADATA: Final = (".dist-info", ".egg-info")


def installed_modules(
    path: Sequence[str] | None = None, *, refresh: bool = False
) -> tuple[FoundModule, ...]:
    """Return every installed module, in the order of the search path.

    Args:
        path: the folders to search; default `sys.path`.
        refresh: read again what this process has read before.
    """
    if refresh:
        _scan.cache_clear()
    return _scan(tuple(sys.path if path is None else path))


def project_folders(paths: Sequence[str]) -> list[str]:
    """Return the `amplifier-module-*` folders below some folders, in their order."""
    folders = [
        os.path.join(path, name)
        for path in paths
        for name in _names(path)
        if name.startswith(FOLDER_PREFIX)
    ]
    return [folder for folder in folders if os.path.isdir(folder)]


def offered_by(folder: str) -> tuple[FoundModule, ...]:
    """Return the modules that a project's folder offers.

    They are those that its metadata or its `pyproject.toml` names; a folder `amplifier-module-<id>` without
    either offers the one module of its name.

    Raises:
        ModuleLoadError: its `pyproject.toml` cannot be read.
    """
    named = tuple(
        attrs.evolve(found, root=folder) for found in _in_folder(folder)
    ) or tuple(_in_project(folder))
    name = os.path.basename(os.path.abspath(folder))
    if named or not name.startswith(FOLDER_PREFIX):
        return named
    module_id = name.removeprefix(FOLDER_PREFIX)
    package = _conventional(module_id)
    root = _root_of(folder, package)
    if root is None:
        return ()
    return (FoundModule(module_id, package, name, folder, root),)


def module_in(folder: str, module_id: str) -> FoundModule:
    """Return the module of an id that a folder holds; it need not be a project.

    The folder is a package itself, or its metadata or `pyproject.toml` names the id, or it holds a package
    `amplifier_module_<id>`, or only one `amplifier_module_*`, directly or below `src`.

    Raises:
        ModuleNotFoundError: the folder holds no such module.
        ModuleConflictError: two distributions in it offer the module.
        ModuleLoadError: its `pyproject.toml` cannot be read.
    """
    folder = os.path.abspath(folder)
    parent, name = os.path.split(folder)
    # before the metadata: a package may be named directly, inside its project
    if os.path.isfile(os.path.join(folder, "__init__.py")):
        return FoundModule(module_id, name, name, folder, parent)
    try:
        offered = offered_by(folder)
    except ModuleLoadError as error:  # it is named after the folder
        raise ModuleLoadError(module_id, error.reason) from error
    match = the_only(module_id, [found for found in offered if found.id == module_id])
    if match is not None:
        return match
    packages = _packages(folder)
    wanted = _conventional(module_id)
    # a single package can only be the one that is meant, whatever its name
    if wanted in packages or len(packages) == 1:
        package = wanted
        if wanted not in packages:
            package = next(iter(packages))
        return FoundModule(module_id, package, name, folder, packages[package])
    raise ModuleNotFoundError(
        module_id, f"{folder} does not hold it; {_contents(offered, packages, wanted)}"
    )


def the_only(module_id: str, matches: Sequence[FoundModule]) -> FoundModule | None:
    """Return the module that is offered once, or `None` where none is.

    Raises:
        ModuleConflictError: two distributions or projects offer it.
    """
    if len(matches) > 1:
        claims = " and ".join(
            f"{found.distribution} ({found.path})" for found in matches
        )
        raise ModuleConflictError(
            module_id, f"claimed by {claims}; uninstall or remove one of them"
        )
    if matches:
        return matches[0]
    return None


def _contents(
    offered: Sequence[FoundModule], packages: dict[str, str], wanted: str
) -> str:
    if offered:
        return f"it offers {', '.join(found.id for found in offered)}"
    if packages:
        return (
            f"it holds several modules ({', '.join(packages)}) and none is {wanted!r}"
        )
    return f"it has neither '__init__.py', nor a pyproject.toml that names the module, nor a package {wanted!r}"


def _conventional(module_id: str) -> str:
    return PACKAGE_PREFIX + module_id.replace("-", "_")


def _packages(folder: str) -> dict[str, str]:
    """Return the packages of modules in a folder, each with the folder that it is imported from."""
    packages: dict[str, str] = {}
    for root in (folder, os.path.join(folder, "src")):
        for name in _names(root):
            stem = name.removesuffix(".py")
            if (
                stem.startswith(PACKAGE_PREFIX)
                and stem.isidentifier()
                and holds_package(root, stem)
            ):
                packages.setdefault(stem, root)
    return packages


def _root_of(folder: str, package: str) -> str | None:
    """Return the folder of a project from which its package is imported."""
    roots = (folder, os.path.join(folder, "src"))
    return next(
        (root for root in roots if holds_package(root, package.partition(".")[0])), None
    )


def holds_package(root: str, name: str) -> bool:
    """Whether a top-level package or module of that name lies in a folder."""
    return os.path.isdir(os.path.join(root, name)) or os.path.isfile(
        os.path.join(root, f"{name}.py")
    )


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []  # entries of a search path need not exist, and may be archives


@lru_cache(maxsize=8)
def _scan(path: tuple[str, ...]) -> tuple[FoundModule, ...]:
    found: dict[tuple[str, str], FoundModule] = {}
    for folder in dict.fromkeys(path):
        for module in _in_folder(folder or os.curdir):
            # as for Python, the first folder that has a distribution is the one that
            # counts
            found.setdefault((module.id, module.distribution), module)
    return tuple(found.values())


def _in_folder(folder: str) -> Iterator[FoundModule]:
    for name in _names(folder):
        if name.endswith(_METADATA):
            where = os.path.join(folder, name)
            yield from _in_metadata(
                where, name.rsplit(".", 1)[0].split("-")[0].replace("_", "-")
            )


def _in_metadata(where: str, distribution: str) -> Iterator[FoundModule]:
    try:
        # What is no UTF-8 spoils the line it stands in and no other.
        with open(
            os.path.join(where, "entry_points.txt"), encoding="utf-8", errors="replace"
        ) as file:
            text = file.read()
    except OSError:
        return  # most distributions have none
    # most files name other groups; looking for the name is cheaper than reading lines
    if GROUP not in text:
        return
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, target = line.split("=", 1)
            yield FoundModule(
                name.strip(), target.split("[")[0].strip(), distribution, where
            )


def _in_project(folder: str) -> Iterator[FoundModule]:
    """Read the entry points that a project declares; a build copies them into the metadata as they are."""
    path = os.path.join(folder, "pyproject.toml")
    if not os.path.isfile(path):
        return
    # only projects that are not installed need it
    from amplifier.kernel.modules.projects import project_table

    name = os.path.basename(os.path.abspath(folder))
    try:
        project = project_table(path)
    except ValueError as error:
        raise ModuleLoadError(
            name.removeprefix(FOLDER_PREFIX), f"{path} cannot be read: {error}"
        ) from error
    points = _table(project.get("entry-points"), GROUP)
    distribution = project.get("name", name)
    for module_id, target in points.items():
        text = str(target).split("[")[0].strip()
        root = _root_of(folder, text.partition(":")[0]) or folder
        yield FoundModule(module_id, text, str(distribution), folder, root)


def _table(value: object, key: str) -> dict[str, object]:
    """Return a table inside another; what is no table is an empty one."""
    inner = None
    if isinstance(value, dict):
        inner = value.get(key)
    if isinstance(inner, dict):
        return inner
    return {}
