"""What is to be validated: a repository, a package folder or an installed module, read without running any of it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Final

import attrs

from amplifier.kernel.modules.sources import GROUP, FoundModule, installed_modules
from amplifier_kit.files.toml import read_toml
from amplifier_sdk.errors import (
    ConfigError,
    ModuleConflictError,
    ModuleNotFoundError,
    did_you_mean,
)

__all__ = ["Package", "PackagedModule", "find_package", "repositories_below", "table"]

PREFIX: Final = "amplifier_module_"
"""How the packages of modules begin."""

_ID: Final = re.compile(r"[\w-]+")
"""A name that may be a module's id: no path says where it is."""

_EXTRAS: Final = re.compile(r"\s*\[.*\]\s*$")


@attrs.frozen(kw_only=True)
class PackagedModule:
    """One module of a package: its id, what its entry point names, and where the code is.

    Args:
        id: the module's id.
        target: as in the entry point, `package.module:attribute`.
        location: the folder or file of the top-level package; `None` if it is not there.
    """

    id: str
    target: str
    location: Path | None = None

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.target.partition(":")[0].partition(".")[0]


@attrs.frozen(kw_only=True)
class Package:
    """A distribution of modules.

    Args:
        path: what was asked for.
        root: the repository; `None` for what is installed.
        name: the distribution's name, if it has one.
        requires: its requirements as text.
        candidates: its modules.
        metadata: the parsed `pyproject.toml`; empty for what is installed.
        problem: why the metadata could not be read.
    """

    path: str
    root: Path | None = None
    name: str | None = None
    requires: tuple[str, ...] = ()
    candidates: tuple[PackagedModule, ...] = ()
    metadata: Mapping[str, object] = attrs.field(factory=dict, repr=False)
    problem: str | None = None

    @property
    def project(self) -> Mapping[str, object]:
        """The `[project]` table."""
        return table(self.metadata, "project")

    @property
    def place(self) -> str | None:
        """Where its metadata stands; `None` for what is installed."""
        if self.root is None:
            return None
        return "pyproject.toml"

    def shown(self, path: Path) -> str:
        """Write a path relative to the repository, as its author knows it."""
        if self.root is not None and path.is_relative_to(self.root):
            return str(path.relative_to(self.root))
        return str(path)

    def settings(self, module_id: str) -> Mapping[str, object]:
        """Return what `[tool.amplifier.validate]` says about a module."""
        return table(self.metadata, "tool", "amplifier", "validate", module_id)


def find_package(path: str | Path) -> Package:
    """Find what a path or a module id means.

    A bare name is the id of an installed module, if there is one: a folder of that name may be anybody's, and the
    code in it would run. `./NAME` names the folder.

    Args:
        path: a repository's root, its `pyproject.toml`, a package's folder, or the id of an installed module.

    Raises:
        ModuleNotFoundError: there is no such folder and no such module, or the folder is no package.
        ModuleConflictError: two distributions have the id.
    """
    given, place = str(path), Path(path).expanduser()
    if place.name == "pyproject.toml" and place.is_file():
        place = place.parent
    is_bare = isinstance(path, str) and _ID.fullmatch(path) is not None
    if not place.is_dir() or (
        is_bare and any(found.id == given for found in installed_modules(refresh=True))
    ):
        return _installed(given)
    place = place.resolve()
    if (place / "pyproject.toml").is_file():
        return _repository(given, place)
    if (place / "__init__.py").is_file():
        return _package_folder(given, place)
    below = [str(folder.relative_to(place)) for folder in repositories_below(place)]
    if below:
        hint = f"Below it are {', '.join(below)}"
    else:
        hint = "Name the folder that holds one of them"
    raise ModuleNotFoundError(
        given, f"this folder has neither pyproject.toml nor __init__.py. {hint}"
    )


def repositories_below(folder: Path) -> list[Path]:
    """Return the folders up to two levels below that hold packages of modules, sorted."""
    found = [
        path.parent
        for pattern in ("*", "*/*")
        for path in folder.glob(f"{pattern}/pyproject.toml")
    ]
    return sorted(
        path for path in found if _entry_points(_read(path / "pyproject.toml")[0])
    )


def table(data: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    """Return a table inside a document; an empty one if it is missing or no table."""
    for key in keys:
        inner = data.get(key)
        if not isinstance(inner, Mapping):
            return {}
        data = inner
    return data


def _repository(given: str, root: Path) -> Package:
    metadata, problem = _read(root / "pyproject.toml")
    candidates = [
        PackagedModule(
            id=module, target=target, location=_locate(root, metadata, target)
        )
        for module, target in _entry_points(metadata)
    ]
    return _package(given, root, metadata, candidates, problem)


def _package_folder(given: str, folder: Path) -> Package:
    """Read a package: the modules of its repository that live in it, else the package itself."""
    if folder.parent.name == "src":
        above = folder.parent.parent
    else:
        above = folder.parent
    metadata, problem = _read(above / "pyproject.toml")
    candidates = [
        candidate
        for module, target in _entry_points(metadata)
        # one folder may hold the packages of several modules
        if (
            candidate := PackagedModule(id=module, target=target, location=folder)
        ).package
        == folder.name
    ]
    if not candidates:
        module = folder.name.removeprefix(PREFIX).replace("_", "-")
        candidates = [PackagedModule(id=module, target=folder.name, location=folder)]
    return _package(given, above, metadata, candidates, problem)


def _package(
    given: str,
    root: Path,
    metadata: Mapping[str, object],
    candidates: Sequence[PackagedModule],
    problem: str | None,
) -> Package:
    project = table(metadata, "project")
    name, requires = project.get("name"), project.get("dependencies")
    return Package(
        path=given,
        root=root,
        name=name if isinstance(name, str) else None,
        requires=tuple(map(str, requires)) if isinstance(requires, list) else (),
        candidates=tuple(candidates),
        metadata=metadata,
        problem=problem,
    )


def _installed(given: str) -> Package:
    matches = [found for found in installed_modules(refresh=True) if found.id == given]
    if not matches:
        known = sorted({found.id for found in installed_modules()})
        hint = (
            did_you_mean(given, known) or f"; installed: {', '.join(known) or 'none'}"
        )
        raise ModuleNotFoundError(
            given, f"no such folder, and no installed module has this id{hint}"
        )
    if len(matches) > 1:
        claims = " and ".join(
            f"{found.distribution} ({found.path})" for found in matches
        )
        raise ModuleConflictError(
            given, f"claimed by {claims}; uninstall one of them, or name a folder"
        )
    return _distribution(given, matches[0])


def _distribution(given: str, found: FoundModule) -> Package:
    distribution = PathDistribution(Path(found.path))
    top = found.target.partition(":")[0].partition(".")[0]
    # found without importing anything: the code runs in a child alone
    spec = PathFinder.find_spec(top, sys.path)
    if spec is None or spec.origin is None:
        origin = None
    else:
        origin = Path(spec.origin)
    location = (
        origin.parent if origin is not None and origin.name == "__init__.py" else origin
    )
    return Package(
        path=given,
        name=found.distribution,
        requires=tuple(distribution.requires or ()),
        candidates=(
            PackagedModule(id=found.id, target=found.target, location=location),
        ),
    )


def _read(file: Path) -> tuple[Mapping[str, object], str | None]:
    """Read a `pyproject.toml`; return what is in it and why it could not be read."""
    # a link that leads nowhere is there, and cannot be read
    if not os.path.lexists(file):
        return {}, f"there is no {file}"
    try:
        return read_toml(file), None
    except ConfigError as error:
        return {}, f"{file} cannot be read: {error.in_one_line}"


def _entry_points(metadata: Mapping[str, object]) -> list[tuple[str, str]]:
    points = table(metadata, "project", "entry-points", GROUP)
    return [
        (module, _EXTRAS.sub("", target).strip())
        for module, target in points.items()
        if isinstance(target, str)
    ]


def _locate(root: Path, metadata: Mapping[str, object], target: str) -> Path | None:
    """Find the top-level package of an entry point in a repository."""
    top = target.partition(":")[0].partition(".")[0]
    for folder in _source_folders(root, metadata):
        for location in (folder / top, folder / f"{top}.py"):
            if top and (location.is_file() or (location / "__init__.py").is_file()):
                return location
    return None


def _source_folders(root: Path, metadata: Mapping[str, object]) -> Iterator[Path]:
    """Yield where a repository may keep its packages: the usual places, then those of its build backend."""
    # first: a folder beside it may have the package's name, such as a build's
    yield root / "src"
    yield root
    packages = table(metadata, "tool", "hatch", "build", "targets", "wheel").get(
        "packages"
    )
    where = table(metadata, "tool", "setuptools", "packages", "find").get("where")
    for path in packages if isinstance(packages, list) else ():
        yield (root / str(path)).parent
    for path in where if isinstance(where, list) else ():
        yield root / str(path)
