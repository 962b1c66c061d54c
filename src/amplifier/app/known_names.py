"""Names that a person may mean, read from files' names and packages' metadata: quick enough for the Tab key.

Nothing is verified or trusted here: whoever takes a name says whether what it names may be used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

from amplifier.app.directories import FOLDER, AppDirs
from amplifier.kernel.modules.catalog import Catalog

__all__ = [
    "collection_names",
    "module_ids",
    "plugin_names",
    "profile_names",
    "provider_names",
    "session_names",
]

_PROVIDER: Final = "provider-"
_README: Final = "README"


def session_names(dirs: AppDirs) -> Iterator[str]:
    """Yield the ids of the project's sessions, and what the person calls them."""
    for file in (dirs.state / "sessions").glob("*/metadata.json"):
        with suppress(OSError, ValueError):  # a damaged record has no name to complete
            record: object = json.loads(file.read_bytes())
            if isinstance(record, dict):
                yield from (
                    value
                    for key in ("session_id", "name")
                    if isinstance(value := record.get(key), str)
                )


def profile_names(dirs: AppDirs) -> Iterator[str]:
    """Yield the names of profiles: the project's, the person's own, those of collections behind their names."""
    for folder in (dirs.root / FOLDER, dirs.home):
        yield from _stems(folder / "profiles")
    for collection in _collections(dirs, bundled=True):
        for profiles in (collection / "profiles", *collection.glob("*/profiles")):
            yield from (f"{collection.name}:{stem}" for stem in _stems(profiles))


def collection_names(dirs: AppDirs) -> Iterator[str]:
    """Yield the names of collections that are installed for the project or the person."""
    yield from (folder.name for folder in _collections(dirs, bundled=False))


def plugin_names(dirs: AppDirs) -> Iterator[str]:
    """Yield the names of the plugins in the person's own folder."""
    yield from (folder.name for folder in _folders(dirs.home / "plugins", "[!.]*"))


def module_ids(_: AppDirs) -> Iterator[str]:
    """Yield the ids of the modules that are installed, or lie below `AMPLIFIER_MODULES`."""
    yield from (module.id for module in Catalog(None, None).modules())


def provider_names(dirs: AppDirs) -> Iterator[str]:
    """Yield the provider modules, without their `provider-`."""
    yield from (
        name.removeprefix(_PROVIDER)
        for name in module_ids(dirs)
        if name.startswith(_PROVIDER)
    )


def _collections(dirs: AppDirs, *, bundled: bool) -> Iterator[Path]:
    roots = [dirs.root / FOLDER, dirs.home]
    if bundled:
        roots.append(Path(str(files("amplifier"))))
    for root in roots:
        yield from _folders(root / "collections", "[!._]*")


def _folders(folder: Path, pattern: str) -> Iterator[Path]:
    yield from (path for path in folder.glob(pattern) if path.is_dir())


def _stems(folder: Path) -> Iterator[str]:
    yield from (file.stem for file in folder.glob("*.md") if file.stem != _README)
