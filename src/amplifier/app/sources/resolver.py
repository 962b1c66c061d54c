"""Where a module's code comes from: layers that are asked in turn, and what each of them said."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.places import FOLDER, Places
from amplifier.app.projects import ProjectFiles
from amplifier.app.settings.expansion import expand
from amplifier.app.settings.layers import Layer, value_at
from amplifier.app.settings.settings import Settings
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.folders import FolderSource
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import GitLocation, Location, PackageLocation, PathLocation, read_location
from amplifier.app.sources.packages import PackageSource
from amplifier.kernel.modules.catalog import Catalog
from amplifier.kernel.modules.sources import FOLDER_PREFIX, offered_by
from amplifier_sdk.contracts import ModuleSource
from amplifier_sdk.errors import AmplifierError, ConfigError, ModuleError, ModuleLoadError, ModuleNotFoundError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["GitSource", "LayeredResolver", "Tried", "make_resolver"]

_VARIABLE: Final = "AMPLIFIER_MODULE_"
_SECTIONS: Final = (("modules", "providers"), ("modules", "tools"), ("modules", "hooks"), ("config", "providers"))


@attrs.frozen(kw_only=True)
class Tried:
    """What one layer said of a module.

    Args:
        layer: its name.
        place: where it looked.
        result: what it found, or why not, in words.
        location: the source it found; `None` where it found none.
        is_refused: whether it names a source that may not be used; then no layer after it is asked.
    """

    layer: str
    place: str
    result: str
    location: Location | None = None
    is_refused: bool = False

    @property
    def is_found(self) -> bool:
        """Whether the module comes from this layer, unless a layer before has it."""
        return self.location is not None


_Answer: TypeAlias = "tuple[str, Location] | None"


@attrs.frozen(kw_only=True)
class GitSource:
    """A module in a repository, at its pinned commit; it is fetched when it is used first."""

    module_id: str
    location: GitLocation
    cache: SourceCache

    def resolve(self) -> Path:
        """Return the folder of the fetched files; the function blocks.

        Raises:
            ModuleLoadError: it cannot be fetched, or is not what was pinned.
        """
        try:
            return self.cache.open(self.location)
        except (AmplifierError, OSError) as error:
            raise ModuleLoadError(self.module_id, _told(error)) from error


@attrs.define(eq=False, kw_only=True)
class LayeredResolver:
    """Finds the source of a module: the environment, the workspace, the settings, collections, the plan.

    What none of them has is left to what is installed. Nothing of an untrusted project is used.

    Args:
        places: where files stand; relative paths of a plan are relative to the working directory.
        project: what of the project's folder may be used.
        settings: the settings that hold.
        collections: the collections there are.
        cache: keeps what was fetched.
        environ: `AMPLIFIER_MODULE_TOOL_X` is the source of `tool-x`.
    """

    places: Places
    project: ProjectFiles
    settings: Settings
    collections: CollectionLibrary
    cache: SourceCache
    environ: Mapping[str, str] = attrs.field(factory=lambda: os.environ, repr=False)
    _projects: list[tuple[str, Path]] | None = attrs.field(default=None, init=False)

    def resolve(self, module_id: str, source_hint: object = None) -> ModuleSource:
        """Return the source of the first layer that has the module; nothing is fetched yet.

        Raises:
            ModuleNotFoundError: no layer has it; lists what each said. It may be installed all the same.
            ModuleLoadError: a layer names a source that may not be used.
        """
        said: list[Tried] = []
        for tried in self._layers(module_id, source_hint):
            if tried.location is not None:
                return self._source(module_id, tried.location)
            said.append(tried)
        told = "; ".join(f"{tried.layer}: {tried.result}" for tried in said)
        raise ModuleNotFoundError(module_id, f"no layer names a source ({told})")

    def why(self, module_id: str, source_hint: object = None) -> tuple[Tried, ...]:
        """Return what every layer says, in the order in which they are asked; the first that found it is used."""
        return (*self._layers(module_id, source_hint, keep_going=True), self._installed(module_id))

    def _layers(self, module_id: str, hint: object, *, keep_going: bool = False) -> Iterator[Tried]:
        variable = _VARIABLE + module_id.upper().replace("-", "_")
        asked: list[tuple[str, str, Callable[[], _Answer | str]]] = [
            ("environment", variable, lambda: self._environment(variable)),
            ("workspace", f"{FOLDER}/modules/{module_id}", lambda: self._workspace(module_id)),
        ]
        asked += [
            (f"settings ({layer.scope})", str(layer.path), partial(self._setting, layer, module_id))
            for layer in self.settings.layers
        ]
        asked.append(("collections", "modules/ of each", lambda: self._collection(module_id)))
        asked.append(("plan", "source", lambda: self._hint(hint)))
        for name, place, ask in asked:
            try:
                answer = ask()
            except (AmplifierError, OSError) as error:
                if not keep_going:
                    raise self._refused(module_id, name, place, error) from error
                yield Tried(layer=name, place=place, result=f"refused: {_told(error)}", is_refused=True)
                continue
            match answer:
                case None:
                    yield Tried(layer=name, place=place, result="not there")
                case str():
                    yield Tried(layer=name, place=place, result=answer)
                case (result, location):
                    yield Tried(layer=name, place=place, result=result, location=location)

    def _refused(self, module_id: str, layer: str, place: str, error: Exception) -> ModuleError:
        return ModuleLoadError(module_id, f"its source in layer {layer!r} ({place}) cannot be used: {_told(error)}")

    def _environment(self, variable: str) -> _Answer:
        value = self.environ.get(variable)
        return _located(read_location(value, self.places.working_dir)) if value else None

    def _workspace(self, module_id: str) -> _Answer | str:
        if self.places.project is None:
            return "the person's own folder is no project"
        folder = self.places.project / "modules" / module_id
        if not folder.is_dir():
            return None
        decision = self.project.judge("modules")
        if decision is None or not decision.trusted:
            reason = "" if decision is None else decision.reason
            return f"not used, since it is not trusted ({reason}); look at it and run 'amplifier trust'"
        prefix = f"{FOLDER}/modules/{module_id}/"
        if not any(name.startswith(prefix) and name.endswith(".py") for name in decision.contents):
            return "the folder has no Python files"
        return _located(PathLocation(path=folder))

    def _setting(self, layer: Layer, module_id: str) -> _Answer:
        base = self.places.root if layer.scope in ("project", "local") else layer.path.parent
        for key, value in _settings_of(layer, module_id):
            line = layer.line(key)
            source = expand(value, self.settings.lookup, path=f"line {line}", subject=f"settings file {layer.path!s}")
            result, location = _located(read_location(source, base))
            return f"{result} (line {line})", location
        return None

    def _collection(self, module_id: str) -> _Answer:
        if self._projects is None:
            self._projects = [
                (collection.name, metadata.parent)
                for collection in self.collections.all().values()
                for metadata in collection.resources("modules", "*/pyproject.toml")
            ]
        for name, folder in self._projects:
            if _offers(folder, module_id):
                return f"{name}: {folder}", PathLocation(path=folder)
        return None

    def _hint(self, hint: object) -> _Answer | str:
        if hint is None:
            return "the plan names no source"
        return _located(read_location(hint, self.places.working_dir))

    def _installed(self, module_id: str) -> Tried:
        place = "entry points and AMPLIFIER_MODULES"
        try:
            found = Catalog(None, None).find(module_id)
        except ModuleError as error:
            return Tried(layer="installed", place=place, result=f"refused: {error}", is_refused=True)
        if found is None:
            return Tried(layer="installed", place=place, result="not there")
        what = f"{found.distribution} {found.version or ''}".strip()
        location = PathLocation(path=Path(found.path))
        return Tried(layer="installed", place=place, result=f"{what} ({found.path})", location=location)

    def _source(self, module_id: str, location: Location) -> ModuleSource:
        match location:
            case GitLocation():
                return GitSource(module_id=module_id, location=location, cache=self.cache)
            case PackageLocation():
                return PackageSource(module_id=module_id, location=location, pins=self.cache.pins)
            case PathLocation():
                return FolderSource(module_id=module_id, path=location.path)


def make_resolver(
    places: Places,
    project: ProjectFiles,
    settings: Settings,
    collections: CollectionLibrary,
    *,
    offline: bool = False,
) -> LayeredResolver:
    """Make the resolver of a session, to be mounted at `module-source-resolver`.

    Args:
        places: where files stand.
        project: what of the project's folder may be used.
        settings: the settings that hold; none where a plan file stands for itself.
        collections: the collections there are.
        offline: whether nothing may be fetched; default what `AMPLIFIER_OFFLINE` says.
    """
    cache = SourceCache.of(places, Git(offline=offline))
    return LayeredResolver(places=places, project=project, settings=settings, collections=collections, cache=cache)


def _settings_of(layer: Layer, module_id: str) -> Iterator[tuple[tuple[str | int, ...], JSONValue]]:
    """Return what a file of settings says of a module's source, the strongest first."""
    for section in _SECTIONS:
        entries = value_at(layer.values, section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, Mapping) and entry.get("module") == module_id and entry.get("source") is not None:
                yield (*section, index, "source"), entry["source"]
    for key in (("overrides", module_id, "source"), ("sources", module_id)):
        value = value_at(layer.values, key)
        if value is not None:
            yield key, value


def _offers(folder: Path, module_id: str) -> bool:
    """Whether a project offers a module; a damaged one fails those alone that it is named after."""
    try:
        return any(found.id == module_id for found in offered_by(str(folder)))
    except ModuleError:
        if folder.name.removeprefix(FOLDER_PREFIX) == module_id:
            raise
        return False


def _located(location: Location) -> tuple[str, Location]:
    return str(location), location


def _told(error: Exception) -> str:
    """Say in one line what is wrong."""
    return "; ".join(map(str, error.problems)) if isinstance(error, ConfigError) else str(error)
