"""The module under test: found from where its tests lie, and mounted for one test."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import attrs

from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.modules.mounts import RESOLVER
from amplifier.kernel.modules.sources import (
    PACKAGE_PREFIX,
    FoundModule,
    module_in,
    offered_by,
)
from amplifier.testing.coordinators import TestCoordinator
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ModuleUnderTest", "find_module", "mounted_module"]

_DECLARED_TYPE: Final = re.compile(
    r"^__amplifier_module_type__\s*(?::[^=\n]*)?=\s*[\"'](\w+)[\"']", re.MULTILINE
)


@attrs.frozen(kw_only=True)
class ModuleUnderTest:
    """A module as its source describes it, without importing it.

    Args:
        id: the module's id.
        type: what it declares, else what its id suggests; `None` when neither says it.
        path: the folder of its package, or the file.
        folder: the folder of its project; the package's own where there is no project.
    """

    id: str
    type: str | None
    path: Path
    folder: Path


def find_module(start: Path) -> ModuleUnderTest | None:
    """Find the module to which a path belongs: a project's folder or anything in it, or a package's folder.

    A project is a folder whose `pyproject.toml` names a module in its entry points, or one that is called
    `amplifier-module-<id>`. Of several modules of a project it is the one in whose package the path lies, else
    the first. Folders above a repository's own are not searched.

    Args:
        start: a file or folder.

    Raises:
        ModuleLoadError: a `pyproject.toml` on the way cannot be read.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if folder.is_dir():
            offered = offered_by(str(folder))
        else:
            offered = ()
        if offered:
            found = next(
                (
                    module
                    for module in offered
                    if start.is_relative_to(_package(module))
                ),
                offered[0],
            )
            return _under_test(found, folder)
        # what lies above a repository belongs to somebody else
        if (folder / ".git").exists():
            break
    if not (start / "__init__.py").is_file():
        return None
    module_id = start.name.removeprefix(PACKAGE_PREFIX).replace("_", "-")
    return _under_test(module_in(str(start), module_id), start)


def _under_test(found: FoundModule, folder: Path) -> ModuleUnderTest:
    path = _package(found)
    if path.is_dir():
        source = path / "__init__.py"
    else:
        source = path
    if source.is_file():
        # read and not imported: the test session may be about a package that is broken
        declared = _DECLARED_TYPE.search(source.read_text("utf-8", "replace"))
    else:
        declared = None
    suggested = ModuleLoader(search_paths=()).type_of(found.id)
    if declared is not None:
        kind = declared[1]
    else:
        kind = None if suggested == "unknown" else suggested
    return ModuleUnderTest(id=found.id, type=kind, path=path, folder=folder)


def _package(found: FoundModule) -> Path:
    place = Path(found.root or found.path).resolve() / found.package.partition(".")[0]
    if place.is_dir():
        return place
    return place.with_name(f"{place.name}.py")


@attrs.frozen
class _Here:
    """A module source, and the resolver that knows no other."""

    folder: Path

    def resolve(self, module_id: str | None = None) -> Path | _Here:
        if module_id is None:
            return self.folder
        return self


@asynccontextmanager
async def mounted_module(
    module: ModuleUnderTest,
    coordinator: TestCoordinator,
    config: Mapping[str, JSONValue],
) -> AsyncIterator[None]:
    """Import a module from its own folder and mount it; at the end the coordinator is cleaned up.

    Raises:
        ModuleLoadError: it cannot be imported or mounted.
    """
    # the resolver is mounted elsewhere: the test's coordinator has the module alone
    finder, loader = TestCoordinator(), ModuleLoader(search_paths=())
    await finder.mount(RESOLVER, _Here(module.folder))
    try:
        mount = await loader.load(module.id, config, coordinator=finder)
        async with coordinator:
            await mount(coordinator)
            yield
    finally:
        loader.cleanup()
