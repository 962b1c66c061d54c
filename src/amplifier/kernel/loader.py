"""The loader: from a module id to something that mounts.

Nothing is imported before the plan names it, and then one module at a time, in a thread with a deadline.
Whatever an entry point names (a `mount` function, a package or object with hookimpls, what the SDK's
decorators made) becomes a plugin of one shape. Every failure names the module and its distribution.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
import attrs

from amplifier.kernel.plan import ModuleSpec
from amplifier.kernel.plugins import MountFunction, Plugins
from amplifier.kernel.sources import GROUP, FoundModule, installed_modules
from amplifier_sdk.errors import (
    HookspecError,
    ModuleConflictError,
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
    did_you_mean,
)
from amplifier_sdk.hookspecs import KINDS, ModuleKind
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.modules import definition_of
from amplifier_sdk.threads import run_blocking

if TYPE_CHECKING:
    from amplifier_sdk.contracts import Coordinator

__all__ = ["LoadedModule", "ModuleInfo", "ModuleLoader"]

TYPE_ATTRIBUTE = "__amplifier_module_type__"
"""Where a package may declare its type."""


@attrs.frozen(kw_only=True)
class ModuleInfo:
    """A module that could be loaded: its id, type and where it comes from."""

    id: str
    type: str
    distribution: str | None
    target: str


@attrs.frozen(kw_only=True)
class LoadedModule:
    """A module that is imported: its plugin, and how to mount it."""

    id: str
    kind: ModuleKind
    plugin: object
    distribution: str | None = None
    ready: Callable[[Coordinator], Awaitable[object]] | None = None


class ModuleLoader:
    """Loads modules for a session.

    Args:
        modules: modules of the application itself by id, no installation needed; whatever an entry point
            may name.
        kinds: the module types; an application may add its own to `KINDS`.
        path: where installed modules are searched; default `sys.path`.
    """

    def __init__(
        self,
        *,
        modules: Mapping[str, object] | None = None,
        kinds: Sequence[ModuleKind] = KINDS,
        path: Sequence[str] | None = None,
    ) -> None:
        self.kinds: tuple[ModuleKind, ...] = tuple(kinds)
        self._modules = dict(modules or {})
        self._path = path

    def discover(self) -> list[ModuleInfo]:
        """List the modules that could be loaded, sorted by id; nothing is imported."""
        own = [
            ModuleInfo(id=name, type=self.type_of(name), distribution=None, target=repr(target))
            for name, target in self._modules.items()
        ]
        installed = [
            ModuleInfo(id=found.id, type=self.type_of(found.id), distribution=found.distribution, target=found.target)
            for found in installed_modules(self._path)
        ]
        return sorted([*own, *installed], key=lambda info: info.id)

    async def load(self, spec: ModuleSpec, kind: ModuleKind, plugins: Plugins, limits: Limits) -> LoadedModule:
        """Import a module and register it as a plugin.

        Raises:
            ModuleNotFoundError: nothing has the id; the message names the nearest and where was searched.
            ModuleConflictError: two distributions have it.
            ModuleLoadError: it cannot be imported.
            ModuleValidationError: what its entry point names cannot be mounted as this type.
        """
        if spec.module in self._modules:
            target = self._modules[spec.module]
            home = getattr(target, "__module__", None) or getattr(target, "__name__", None)
            return self._register(spec, kind, plugins, target, sys.modules.get(str(home)), None)
        found = self._find(spec.module)
        package = await self._import(found, limits.import_timeout)
        return self._register(spec, kind, plugins, _named(found, package), package, found.distribution)

    def type_of(self, module_id: str) -> str:
        """Return the type a module's id suggests by its beginning; the declared type wins when it is loaded."""
        for kind in self.kinds:
            if module_id.startswith(kind.prefixes or (f"{kind.name}-",)):
                return kind.name
        return "unknown"

    def _find(self, module_id: str) -> FoundModule:
        """Find the one installed module of an id; look again if it was installed since the last look."""
        matches = [found for found in installed_modules(self._path) if found.id == module_id]
        if not matches:
            matches = [found for found in installed_modules(self._path, refresh=True) if found.id == module_id]
        if len(matches) > 1:
            claims = " and ".join(f"{found.distribution} ({found.path})" for found in matches)
            raise ModuleConflictError(module_id, f"claimed by {claims}; uninstall one of them")
        if matches:
            return matches[0]
        known = sorted({*self._modules, *(found.id for found in installed_modules(self._path))})
        folders = len(sys.path if self._path is None else self._path)
        raise ModuleNotFoundError(
            module_id,
            f"not found{did_you_mean(module_id, known) or '.'}"
            f" Searched the application's own modules ({len(self._modules)})"
            f" and the entry points of group {GROUP!r} in {folders} folders;"
            f" known: {', '.join(known) or 'none'}. Install the distribution that provides it,"
            f" usually 'amplifier-module-{module_id}'",
        )

    async def _import(self, found: FoundModule, timeout: float) -> object:
        """Import the package of an entry point, in a thread with a deadline: an import runs foreign code."""
        name = found.target.partition(":")[0]
        package: object = sys.modules.get(name)
        if package is not None and not _is_loading(package):
            return package
        with anyio.move_on_after(timeout) as scope:
            try:
                package = await run_blocking(partial(import_module, name), name=f"import {name}")
            except (Exception, SystemExit) as error:  # foreign code
                raise _import_error(found, error) from error
        if scope.cancelled_caught:
            reason = f"importing {name!r} took longer than {timeout:g} s"
            raise ModuleLoadError(found.id, reason, distribution=found.distribution)
        return package

    def _register(
        self,
        spec: ModuleSpec,
        kind: ModuleKind,
        plugins: Plugins,
        target: object,
        module: object,
        distribution: str | None,
    ) -> LoadedModule:
        self._check_type(spec, kind, target, module, distribution)
        name = spec.module if spec.instance_id is None else f"{spec.module}@{spec.instance_id}"
        try:
            plugin = self._plugin(spec, kind, plugins, target, distribution)
            if not plugins.manager.is_registered(plugin):
                plugins.register_module(name, plugin)
                _check_implements(spec, kind, plugins, plugin, distribution)
        except HookspecError as error:
            raise ModuleValidationError(spec.module, str(error), distribution=distribution) from error
        ready = getattr(module, "on_session_ready", None)
        return LoadedModule(
            id=spec.module,
            kind=kind,
            plugin=plugin,
            distribution=distribution,
            ready=ready if inspect.iscoroutinefunction(ready) else None,
        )

    def _check_type(
        self, spec: ModuleSpec, kind: ModuleKind, target: object, module: object, distribution: str | None
    ) -> None:
        """Refuse a module that declares another type than the section it stands in."""
        definition = definition_of(target)
        declared = definition.kind if definition else getattr(target, TYPE_ATTRIBUTE, None)
        declared = declared or getattr(module, TYPE_ATTRIBUTE, None)
        if declared is not None and declared != kind.name:
            raise ModuleValidationError(
                spec.module,
                f"{spec.path} is a place for a {kind.name}, but the module declares the type {declared!r}",
                distribution=distribution,
            )

    def _plugin(
        self, spec: ModuleSpec, kind: ModuleKind, plugins: Plugins, target: object, distribution: str | None
    ) -> object:
        """Return the plugin object of what an entry point names."""
        definition = definition_of(target)
        if definition is not None:
            return _MountPlugin(kind, definition.mount)
        if _has_implementation(plugins, target):
            return target
        mount = target if inspect.isroutine(target) else getattr(target, "mount", None)
        if mount is None:
            raise ModuleValidationError(
                spec.module,
                f"its entry point names {type(target).__name__} {getattr(target, '__name__', target)!r}, which has no"
                f" 'mount' function, no {kind.spec.name} implementation and no decorator of the SDK",
                distribution=distribution,
            )
        _check_mount(spec.module, mount, distribution)
        return _MountPlugin(kind, mount)


def _named(found: FoundModule, package: object) -> object:
    """Return what an entry point names inside its package."""
    target = package
    try:
        for attribute in filter(None, found.target.partition(":")[2].split(".")):
            target = getattr(target, attribute)
    except Exception as error:  # foreign code: a package may load its names when they are asked for
        raise _import_error(found, error) from error
    return target


def _is_loading(package: object) -> bool:
    """Whether another thread still runs the package's code; importing it waits for that."""
    return bool(getattr(getattr(package, "__spec__", None), "_initializing", False))


def _import_error(found: FoundModule, error: BaseException) -> ModuleLoadError:
    reason = f"importing {found.target!r} failed: {type(error).__name__}: {error}"
    return ModuleLoadError(found.id, reason, distribution=found.distribution)


class _MountPlugin:
    """A plugin of one implementation: a module's `mount` under its type's hook."""

    def __init__(self, kind: ModuleKind, mount: MountFunction) -> None:
        async def implementation(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
            return await mount(coordinator, config)

        setattr(self, kind.spec.name, kind.spec.impl(implementation))


def _has_implementation(plugins: Plugins, target: object) -> bool:
    return any(plugins.manager.parse_hookimpl_opts(target, name) is not None for name in dir(target))


def _check_implements(
    spec: ModuleSpec, kind: ModuleKind, plugins: Plugins, plugin: object, distribution: str | None
) -> None:
    """Refuse a plugin that implements hooks, but not the one of the section it stands in."""
    callers = plugins.manager.get_hookcallers(plugin)
    if callers is not None and kind.spec.name not in [caller.name for caller in callers]:
        has = ", ".join(caller.name for caller in callers)
        raise ModuleValidationError(
            spec.module, f"{spec.path} needs {kind.spec.name}, but it implements {has}", distribution=distribution
        )


def _check_mount(module_id: str, mount: object, distribution: str | None) -> None:
    if not inspect.iscoroutinefunction(mount):
        reason = "'mount' is not a coroutine function; write 'async def mount(coordinator, config)'"
        raise ModuleValidationError(module_id, reason, distribution=distribution)
    try:
        inspect.signature(mount).bind(None, {})
    except TypeError as error:
        reason = f"'mount' is called with (coordinator, config), but {error}"
        raise ModuleValidationError(module_id, reason, distribution=distribution) from error
