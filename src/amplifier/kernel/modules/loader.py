"""The loader: from a module id to code that can be mounted.

Nothing is imported before it is named, and then one module at a time, in a thread with a deadline. An
application's own modules come first, then what its module source resolver says, then what is installed, then
the `amplifier-module-*` folders of the search paths. Every failure names the module and where it was found.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, cast, runtime_checkable

import attrs

from amplifier.kernel.modules.adapters import adapted
from amplifier.kernel.modules.catalog import Catalog
from amplifier.kernel.modules.imports import ImportPaths, import_error, import_package
from amplifier.kernel.modules.mounts import RESOLVER
from amplifier.kernel.modules.plugins import Plugins
from amplifier.kernel.modules.shapes import ImportedModule, load_plugin, main_of
from amplifier.kernel.modules.sources import FoundModule, module_in
from amplifier.kernel.plans.plan import ModuleSpec
from amplifier.kernel.reports import configure_loaded, report
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ModuleLoadError, ModuleNotFoundError, did_you_mean
from amplifier_sdk.hookspecs import KINDS, ModuleKind
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.values import Value

__all__ = ["AmplifierModuleLoader", "ModuleInfo", "ModuleLoader", "MountModule"]

MountModule: TypeAlias = Callable[[Coordinator], Awaitable[object]]
"""Mounts a loaded module, with its configuration, on a coordinator."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ModuleInfo(Value):
    """A module that could be loaded, as far as is known without importing it.

    Args:
        id: the module's id.
        type: the type that its id suggests; `unknown` when it suggests none.
        mount_point: where such modules are mounted; `None` for an unknown type.
        distribution: who offers it; `None` for an application's own module.
        version: the distribution's, where the metadata's folder has it.
        location: the folder in which it was found; `None` for an application's own module.
        target: what its entry point names.
    """

    id: str
    type: str
    target: str
    mount_point: str | None = None
    distribution: str | None = None
    version: str | None = None
    location: str | None = None


def _nearest(module: str, known: Sequence[str]) -> str:
    """Return the hint at the nearest id of the same type: its beginning alone makes any two look alike."""
    begin, dash, name = module.partition("-")
    names = [each.removeprefix(begin + dash) for each in _of_type(module, known)]
    hint = did_you_mean(name, names)
    return hint.replace("'", f"'{begin}{dash}", 1)


def _of_type(module: str, known: Sequence[str]) -> list[str]:
    begin, dash, _ = module.partition("-")
    return [each for each in known if dash and each.startswith(begin + dash)]


class ModuleLoader:
    """Finds and loads modules; one loader may serve any number of sessions.

    Args:
        coordinator: whose module source resolver `load` asks when it is given no other coordinator. A
            session's modules are always loaded with the session's own.
        search_paths: folders with `amplifier-module-*` folders in them; default those of the environment
            variable `AMPLIFIER_MODULES`, which is written as `PATH` is.
        modules: modules of the application itself by id, no installation needed; whatever an entry point
            may name.
        kinds: the module types; an application may add its own to `KINDS`.
        path: where installed modules are searched; default `sys.path`.
        limits: the deadlines of `load`; a session has its own.
    """

    def __init__(
        self,
        coordinator: Coordinator | None = None,
        search_paths: Sequence[str | os.PathLike[str]] | None = None,
        *,
        modules: Mapping[str, object] | None = None,
        kinds: Sequence[ModuleKind] = KINDS,
        path: Sequence[str] | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.coordinator: Coordinator | None = coordinator
        self.kinds: tuple[ModuleKind, ...] = tuple(kinds)
        self._modules = dict(modules or {})
        self._catalog = Catalog(search_paths, path)
        self._limits = limits
        self._paths = ImportPaths()

    def discover(self) -> list[ModuleInfo]:
        """List the modules that could be loaded, sorted by id; nothing is imported.

        An id that several offer is listed for each of them. A search path that does not exist is reported.
        """
        own = [self._info(name, repr(target)) for name, target in self._modules.items()]
        found = [
            self._info(
                module.id,
                module.target,
                distribution=module.distribution,
                version=module.version,
                location=module.path,
            )
            for module in self._catalog.modules()
        ]
        return sorted([*own, *found], key=lambda info: info.id)

    def type_of(self, module_id: str) -> str:
        """Return the type that a module's id suggests, by how it begins or else by a word in it.

        What the module declares wins when it is loaded. An id that suggests nothing is `unknown`.
        """
        prefixes = [
            (kind.name, kind.prefixes or (f"{kind.name}-",)) for kind in self.kinds
        ]
        for name, beginnings in (*prefixes, ("resolver", ("resolver-",))):
            if module_id.startswith(beginnings):
                return name
        return next(
            (name for word, name in _WORDS.items() if word in module_id), "unknown"
        )

    async def find(
        self,
        spec: ModuleSpec,
        *,
        resolver: object = None,
        limits: Limits = Limits(),
        paths: ImportPaths,
    ) -> ImportedModule:
        """Find a module and import it.

        Args:
            spec: the module's id and source.
            resolver: the application's module source resolver, if it has one.
            limits: the deadlines for sources and imports.
            paths: keeps what the module needs on `sys.path`; the caller releases it.

        Raises:
            ModuleNotFoundError: nothing has the id; the message names the nearest and where was searched.
            ModuleConflictError: two offer it, or its package's name is taken by another folder's.
            ModuleLoadError: it cannot be resolved or imported.
        """
        # the application's own come first, so that a test can replace what is installed
        if spec.module in self._modules:
            target = self._modules[spec.module]
            home = getattr(target, "__module__", None) or getattr(
                target, "__name__", None
            )
            own = ImportedModule(
                id=spec.module, target=target, package=sys.modules.get(str(home))
            )
            return adapted(own)
        if resolver is None:
            found = self._find_directly(spec)
        else:
            found = await self._resolve(spec, resolver, limits)
        # a project's folder holds what its package imports; installed ones need no path
        if found.root is not None and _is_below(found.root, found.path):
            paths.add(found.root)
        package = await import_package(found, limits.import_timeout)
        configure_loaded()
        if ":" in found.target:
            target = _named(found, package)
        else:
            target = main_of(package, found.id)
        imported = ImportedModule(
            id=found.id,
            target=target,
            package=package,
            distribution=found.distribution,
            location=found.path,
        )
        return adapted(imported)

    async def load(
        self,
        module_id: str,
        config: Mapping[str, JSONValue] | None = None,
        source_hint: object = None,
        *,
        profile_source: object = None,
        profile_hint: object = None,
        coordinator: Coordinator | None = None,
    ) -> MountModule:
        """Import a module, and return the async function that mounts it on a coordinator.

        On the coordinator of a session or of `amplifier.testing` the function does all that a session does:
        it mounts what the module returns, and the coordinator's clean-up releases it. On any other coordinator
        it calls the module's `mount` and returns what that returns.

        Args:
            module_id: the module.
            config: its configuration.
            source_hint: where it comes from, for the module source resolver; `profile_source` and
                `profile_hint` are the same.
            profile_source: see `source_hint`.
            profile_hint: see `source_hint`.
            coordinator: whose module source resolver is asked; default the loader's own.

        Raises:
            ModuleNotFoundError: nothing has the id.
            ModuleConflictError: two offer it.
            ModuleLoadError: it cannot be imported.
            ModuleValidationError: what its entry point names cannot be mounted.
        """
        hint = next(
            (
                given
                for given in (source_hint, profile_source, profile_hint)
                if given is not None
            ),
            None,
        )
        spec = ModuleSpec(
            module=module_id,
            path="the call of load()",
            source=hint,
            config=dict(config or {}),
        )
        resolver = _resolver_of(coordinator or self.coordinator)
        imported = await self.find(
            spec, resolver=resolver, limits=self._limits, paths=self._paths
        )
        kind = self._kind_of(imported)
        # what cannot be mounted is refused here already
        # with plugins that are thrown away: those of a session are not known yet
        load_plugin(imported, spec, kind, Plugins(self.kinds))

        async def mount(coordinator: Coordinator) -> object:
            if isinstance(coordinator, _Mounting):
                plugin = load_plugin(imported, spec, kind, coordinator.plugins).plugin
                await coordinator.mount_module(spec, kind, plugin)
                return None
            plugins = Plugins(self.kinds)
            plugin = load_plugin(imported, spec, kind, plugins).plugin
            results = await kind.spec.call(
                plugins.manager, plugin, coordinator, dict(spec.config)
            )
            if len(results) == 1:
                return results[0]
            return results

        return mount

    def cleanup(self) -> None:
        """Take away from `sys.path` what `load` added; sessions do this themselves."""
        self._paths.release()

    # -- finding

    async def _resolve(
        self, spec: ModuleSpec, resolver: object, limits: Limits
    ) -> FoundModule:
        """Ask the resolver; one that does not know the module leaves it to what is installed."""
        # only sessions with a resolver need it
        from amplifier.kernel.modules.resolvers import find_source, open_source

        try:
            source = await find_source(
                resolver, spec.module, spec.source, limits.source_timeout
            )
        except ModuleNotFoundError as error:
            try:
                return self._find_directly(spec)
            # both were asked, so both reasons are given
            except ModuleNotFoundError as direct:
                reason = f"{direct.reason}. Sources: {error.reason}"
                raise error.amended(reason=reason) from error
        return module_in(
            await open_source(source, spec.module, limits.source_timeout), spec.module
        )

    def _find_directly(self, spec: ModuleSpec) -> FoundModule:
        """Find the one module of an id that is installed or lies in a search path."""
        found = self._catalog.find(spec.module)
        if found is None:
            raise ModuleNotFoundError(spec.module, self._not_found(spec))
        if spec.source is not None:
            report(
                "module.source_not_used",
                module=spec.module,
                source=spec.source,
                used=found.path,
            )
        return found

    def _not_found(self, spec: ModuleSpec) -> str:
        """Say what was searched, and what might have been meant."""
        # only now: to list everything reads every project's metadata again
        known = sorted({info.id for info in self.discover()})
        unused = ""
        if spec.source is not None:
            unused = f" Its source {spec.source!r} was not used: {_NO_RESOLVER}."
        return (
            f"not found{_nearest(spec.module, known) or '.'}{unused}"
            f" Searched the application's own modules ({len(self._modules)}) and {self._catalog.places()}."
            f" There are: {', '.join(_of_type(spec.module, known) or known) or 'none'}"
        )

    # -- types

    def _info(
        self,
        name: str,
        target: str,
        *,
        distribution: str | None = None,
        version: str | None = None,
        location: str | None = None,
    ) -> ModuleInfo:
        kind = self.type_of(name)
        points = {known.name: known.mount_point for known in self.kinds} | {
            "resolver": RESOLVER
        }
        return ModuleInfo(
            id=name,
            type=kind,
            mount_point=points.get(kind),
            distribution=distribution,
            version=version,
            location=location,
            target=target,
        )

    def _kind_of(self, imported: ImportedModule) -> ModuleKind:
        """Return the type of a module that no section of a plan names: declared, suggested by its id, or a tool."""
        declared = imported.declared_type
        name = declared or self.type_of(imported.id)
        kinds = {kind.name: kind for kind in self.kinds}
        if declared is not None and declared not in kinds:
            hint = did_you_mean(declared, list(kinds)) or f"; known: {', '.join(kinds)}"
            raise ModuleLoadError(
                imported.id,
                f"it declares the unknown type {declared!r}{hint}",
                distribution=imported.distribution,
            )
        return kinds.get(name) or kinds["tool"]


AmplifierModuleLoader = ModuleLoader
"""The loader under the name that the module source protocol gives it as well."""

_WORDS: Final[Mapping[str, str]] = {
    "orchestrat": "orchestrator",
    "loop": "orchestrator",
    "provider": "provider",
    "tool": "tool",
    "hook": "hook",
    "context": "context",
}
"""The words in a module's id that suggest its type when its beginning does not; the first that occurs wins."""

_NO_RESOLVER: Final = f"no resolver that knows it is mounted at {RESOLVER!r}"


@runtime_checkable
class _Mounting(Protocol):
    """A coordinator that mounts modules as a session does."""

    plugins: Plugins

    async def mount_module(
        self, spec: ModuleSpec, kind: ModuleKind, plugin: object
    ) -> object: ...


def _resolver_of(coordinator: Coordinator | None) -> object:
    """Return what is mounted as module source resolver; a coordinator need not have such a mount point."""
    if coordinator is None:
        return None
    try:
        return coordinator.get(RESOLVER)
    except ValueError:
        return None


def _named(found: FoundModule, package: object) -> object:
    """Return what an entry point names inside its package."""
    target = package
    try:
        for attribute in filter(
            None, found.target.partition(":")[2].strip().split(".")
        ):
            target = cast("object", getattr(target, attribute))
    except Exception as error:
        # foreign code: a package may load its names when they are asked for
        raise import_error(found, error) from error
    return target


def _is_below(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(other + os.sep)
