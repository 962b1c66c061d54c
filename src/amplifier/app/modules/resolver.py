"""Where a module's code comes from: layers that are asked in turn, and what each of them said."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.settings.layers import Key, Layer, value_at
from amplifier.app.settings.settings import Settings
from amplifier.app.sources.approved import approved_copy
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.git import Git
from amplifier.app.sources.kinds import LocatedSource, explain
from amplifier.app.sources.locations import Location, PathLocation
from amplifier.app.sources.parser import read_location
from amplifier.kernel.modules.catalog import Catalog
from amplifier.kernel.modules.sources import FOLDER_PREFIX, offered_by
from amplifier_sdk.contracts import ModuleSource
from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    ModuleError,
    ModuleLoadError,
    ModuleNotFoundError,
)

__all__ = ["LayerResult", "LayeredResolver", "make_resolver"]

# A folder that the person names themselves is used as it is, and changes with it.
_OF_THE_PERSON: Final = frozenset(
    {"environment", "settings (user)", "settings (session)"}
)
_VARIABLE: Final = "AMPLIFIER_MODULE_"
_SECTIONS: Final = (
    ("modules", "providers"),
    ("modules", "tools"),
    ("modules", "hooks"),
    ("config", "providers"),
)


@attrs.frozen(kw_only=True)
class LayerResult:
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


@attrs.define(eq=False, kw_only=True)
class LayeredResolver:
    """Finds the source of a module: the environment, the workspace, the settings, collections, the plan.

    What none of them has is left to what is installed. Nothing of an untrusted project is used.

    Args:
        dirs: where files stand; relative paths of a plan are relative to the working directory.
        project: what of the project's folder may be used.
        settings: the settings that hold.
        collections: the collections there are.
        cache: keeps what was fetched.
        environ: `AMPLIFIER_MODULE_TOOL_X` is the source of `tool-x`.
    """

    dirs: AppDirs
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
        said: list[LayerResult] = []
        for tried in self._layers(module_id, source_hint):
            if tried.location is not None:
                location = self._approved(module_id, tried, tried.location)
                return LocatedSource(
                    module_id=module_id, location=location, cache=self.cache
                )
            said.append(tried)
        raise ModuleNotFoundError(
            module_id, f"no layer names a source ({_listed(said)})"
        )

    def _approved(
        self, module_id: str, tried: LayerResult, location: Location
    ) -> Location:
        """Return a copy of the checked files of a folder that the project names, since the folder may change.

        Raises:
            ModuleLoadError: nobody trusted it.
        """
        if tried.layer in _OF_THE_PERSON or not isinstance(location, PathLocation):
            return location
        try:
            # Between the check and the import the folder may be changed; the copy holds
            # what was trusted.
            copy = approved_copy(self.project, location.path)
        except (AmplifierError, OSError) as error:
            raise self._refused(module_id, tried.layer, tried.place, error) from error
        if copy is None:
            return location
        return PathLocation(path=copy)

    def locate(self, module_id: str, source_hint: object = None) -> Location | None:
        """Return where the first layer that has the module says it is; `None` where none has it.

        Raises:
            ModuleLoadError: a layer names a source that may not be used.
        """
        return next(
            (
                tried.location
                for tried in self._layers(module_id, source_hint)
                if tried.is_found
            ),
            None,
        )

    def why(
        self, module_id: str, source_hint: object = None
    ) -> tuple[LayerResult, ...]:
        """Return what every layer says, in the order in which they are asked; the first that found it is used."""
        return (
            *self._layers(module_id, source_hint, keep_going=True),
            self._installed(module_id),
        )

    def _layers(
        self, module_id: str, hint: object, *, keep_going: bool = False
    ) -> Iterator[LayerResult]:
        variable = _VARIABLE + module_id.upper().replace("-", "_")
        # The most specific first; each is asked only where no earlier one answers.
        asked: list[tuple[str, str, Callable[[], _Answer | str]]] = [
            ("environment", variable, partial(self._environment, variable)),
            ("workspace", _workspace(module_id), partial(self._workspace, module_id)),
            *(
                (
                    f"settings ({layer.scope})",
                    str(layer.path),
                    partial(self._setting, layer, module_id),
                )
                for layer in self.settings.layers
            ),
            ("collections", "modules/ of each", partial(self._collection, module_id)),
            ("plan", "source", partial(self._hint, hint)),
        ]
        for name, place, ask in asked:
            try:
                answer = ask()
            except (AmplifierError, OSError) as error:
                # A source that may not be used is an error: the next layer has another
                # module of the name.
                if not keep_going:
                    raise self._refused(module_id, name, place, error) from error
                problem = f"refused: {explain(error)}"
                yield LayerResult(
                    layer=name, place=place, result=problem, is_refused=True
                )
                continue
            result, location = answer if isinstance(answer, tuple) else (answer, None)
            yield LayerResult(
                layer=name, place=place, result=result or "not there", location=location
            )

    def _refused(
        self, module_id: str, layer: str, place: str, error: Exception
    ) -> ModuleError:
        return ModuleLoadError(
            module_id,
            f"its source in layer {layer!r} ({place}) cannot be used: {explain(error)}",
        )

    def _environment(self, variable: str) -> _Answer:
        value = self.environ.get(variable)
        if value:
            return _located(read_location(value, self.dirs.working_dir))
        return None

    def _workspace(self, module_id: str) -> _Answer | str:
        if self.dirs.project is None:
            return "the person's own folder is no project"
        folder = self.dirs.project / "modules" / module_id
        if not folder.is_dir():
            return None
        if _has_python(self.project.untrusted("modules"), module_id):
            raise ConfigError.of(
                module_id,
                self.project.refusal("modules", folder),
                subject="choice of modules",
            )
        if not _has_python(self.project.contents("modules"), module_id):
            return "the folder has no Python files"
        return _located(PathLocation(path=folder))

    def _setting(self, layer: Layer, module_id: str) -> _Answer:
        for key in _keys_of(layer, module_id):
            source = layer.expanded(key, self.settings.lookup)
            result, location = _located(read_location(source, layer.base))
            return f"{result} (line {layer.line(key)})", location
        return None

    def _collection(self, module_id: str) -> _Answer:
        if self._projects is None:
            self._projects = [
                (layer.name, metadata.parent)
                for layer in self.collections.layers()
                for metadata in layer.resources("modules", "*/pyproject.toml")
            ]
        # Before the collections that may be used: one of them may offer the same
        # module.
        for path in self.project.untrusted("profiles"):
            folder = (self.dirs.root / path).parent
            if (
                path.endswith("/pyproject.toml")
                and folder.parent.name == "modules"
                and _offers(folder, module_id)
            ):
                problem = self.project.refusal("profiles", folder)
                raise ConfigError.of(module_id, problem, subject="choice of modules")
        for name, folder in self._projects:
            if _offers(folder, module_id):
                return f"{name}: {folder}", PathLocation(path=folder)
        return None

    def _hint(self, hint: object) -> _Answer | str:
        if hint is None:
            return "the plan names no source"
        return _located(read_location(hint, self.dirs.working_dir))

    def _installed(self, module_id: str) -> LayerResult:
        tried = LayerResult(
            layer="installed",
            place="entry points and AMPLIFIER_MODULES",
            result="not there",
        )
        try:
            found = Catalog(None, None).find(module_id)
        except ModuleError as error:
            return attrs.evolve(tried, result=f"refused: {error}", is_refused=True)
        if found is None:
            return tried
        what = f"{found.distribution} {found.version or ''}".strip()
        location = PathLocation(path=Path(found.path))
        return attrs.evolve(tried, result=f"{what} ({found.path})", location=location)


def make_resolver(
    dirs: AppDirs,
    project: ProjectFiles,
    settings: Settings,
    collections: CollectionLibrary,
    *,
    offline: bool = False,
) -> LayeredResolver:
    """Make the resolver of a session, to be mounted at `module-source-resolver`.

    Args:
        dirs: where files stand.
        project: what of the project's folder may be used.
        settings: the settings that hold; none where a plan file stands for itself.
        collections: the collections there are.
        offline: whether nothing may be fetched; default what `AMPLIFIER_OFFLINE` says.
    """
    cache = SourceCache.of(dirs, Git(offline=offline))
    return LayeredResolver(
        dirs=dirs,
        project=project,
        settings=settings,
        collections=collections,
        cache=cache,
    )


def _keys_of(layer: Layer, module_id: str) -> Iterator[Key]:
    """Return under which keys a file of settings names a module's source, the strongest first."""
    for section in _SECTIONS:
        entries = value_at(layer.values, section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if (
                isinstance(entry, Mapping)
                and entry.get("module") == module_id
                and entry.get("source") is not None
            ):
                yield (*section, index, "source")
    for key in (("overrides", module_id, "source"), ("sources", module_id)):
        if value_at(layer.values, key) is not None:
            yield key


def _workspace(module_id: str) -> str:
    return f"{FOLDER}/modules/{module_id}"


def _has_python(names: Iterable[str], module_id: str) -> bool:
    own = f"{_workspace(module_id)}/"
    return any(name.startswith(own) and name.endswith(".py") for name in names)


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


def _listed(said: Sequence[LayerResult]) -> str:
    by_result: dict[str, list[str]] = {}
    for tried in said:
        by_result.setdefault(tried.result, []).append(tried.layer)
    return "; ".join(
        f"{', '.join(layers)}: {result}" for result, layers in by_result.items()
    )
