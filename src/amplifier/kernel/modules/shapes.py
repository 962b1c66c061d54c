"""What an entry point names, made into a plugin of one shape.

It may name a `mount` function, a package or an object with one, an object with hookimpls, or what the SDK's
decorators made. Everything that can be seen without running the module is checked here; what it mounts is
checked as it mounts it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Final, cast

import attrs

from amplifier.kernel.modules.plugins import MountFunction, Plugins
from amplifier.kernel.plans.plan import ModuleSpec
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import HookspecError, ModuleLoadError, ModuleValidationError
from amplifier_sdk.hookspecs import PROJECT, Config, HookSpec, ModuleKind
from amplifier_sdk.modules import definition_of
from amplifier_sdk.restrictions import Restriction
from amplifier_sdk.values import Value

__all__ = ["ImportedModule", "LoadedModule", "Ready", "load_plugin", "main_of"]

TYPE_ATTRIBUTE = "__amplifier_module_type__"
"""Where a package, or what the entry point names, may declare the module's type."""

_MARK: Final = f"{PROJECT}_impl"
"""What pluggy leaves on a function that is an implementation."""

Ready = Callable[[Coordinator], object]
"""A module's `on_session_ready(coordinator)`."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ImportedModule(Value):
    """A module whose code is there: what its entry point names, and the Python module that holds it.

    `location` is the folder or the metadata in which it was found; `None` for an application's own.
    """

    id: str
    target: object
    package: object = None
    distribution: str | None = None
    location: str | None = None

    @property
    def declared_type(self) -> str | None:
        """The type that the module declares, by a decorator of the SDK or by `__amplifier_module_type__`."""
        definition = definition_of(self.target)
        if definition is not None:
            return definition.kind
        for holder in (self.target, self.package):
            declared: object = getattr(holder, TYPE_ATTRIBUTE, None)
            if declared is not None:
                return str(declared)
        return None

    @property
    def agent_config(self) -> Mapping[str, Restriction]:
        """What the module lets agents make stricter of its configuration; see `amplifier_sdk.restrictions`."""
        # an application may hand in a part of it
        root = str(getattr(self.package, "__name__", "")).partition(".")[0]
        for holder in (self.target, self.package, sys.modules.get(root)):
            declared: object = getattr(holder, "agent_config", None)
            if isinstance(declared, Mapping):
                return declared
        return {}

    @property
    def on_session_ready(self) -> Ready | None:
        """What the module wants called when every module is mounted."""
        ready = getattr(self.package, "on_session_ready", None)
        return ready if callable(ready) else None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LoadedModule(Value):
    """A module that is registered with a session: its plugin, and what else its package says of it."""

    id: str
    kind: ModuleKind
    plugin: object
    distribution: str | None = None
    ready: Ready | None = None
    agent_config: Mapping[str, Restriction] = attrs.field(factory=dict)


def main_of(package: ModuleType, module_id: str) -> object:
    """Return what stands for the module in a package that no entry point speaks of.

    That is the package itself when it has `mount` or hookimpls, else the one public name that a decorator of
    the SDK made.

    Raises:
        ModuleLoadError: there is none, or several.
    """
    if hasattr(package, "mount") or any(
        hasattr(value, _MARK) for value in vars(package).values()
    ):
        return package
    public = getattr(package, "__all__", None) or [
        name for name in vars(package) if not name.startswith("_")
    ]
    made = {
        name: value
        for name in public
        if definition_of(value := getattr(package, name, None)) is not None
    }
    # by identity: one module may be public under two names
    if len(set(map(id, made.values()))) == 1:
        return next(iter(made.values()))
    has = "neither 'mount' nor a decorated name"
    if made:
        has = f"several decorated names ({', '.join(sorted(made))})"
    raise ModuleLoadError(
        module_id,
        f"package {package.__name__!r} has {has}; name its module in the entry points of its pyproject.toml",
    )


def load_plugin(
    imported: ImportedModule, spec: ModuleSpec, kind: ModuleKind, plugins: Plugins
) -> LoadedModule:
    """Register a module with a session's plugins; nothing of the module runs.

    Raises:
        ModuleValidationError: it is of another type, or it has nothing that can be mounted.
        ModuleConflictError: its name is registered already.
    """
    _check_type(imported, spec, kind)
    try:
        # one object under two entries of a plan is one plugin: pluggy refuses it twice
        plugin = _plugin(imported, kind, plugins)
        if not plugins.manager.is_registered(plugin):
            plugins.register_module(spec.plugin_name, plugin)
            _check_implements(imported, spec, kind, plugins, plugin)
    except HookspecError as error:
        raise _invalid(imported, str(error)) from error
    return LoadedModule(
        id=spec.module,
        kind=kind,
        plugin=plugin,
        distribution=imported.distribution,
        ready=imported.on_session_ready,
        agent_config=imported.agent_config,
    )


def _invalid(imported: ImportedModule, reason: str) -> ModuleValidationError:
    return ModuleValidationError(
        imported.id, reason, distribution=imported.distribution
    )


def _check_type(imported: ImportedModule, spec: ModuleSpec, kind: ModuleKind) -> None:
    """Refuse a module that declares another type than the section it stands in."""
    declared = imported.declared_type
    if declared is not None and declared != kind.name:
        reason = f"{spec.path} is a place for a {kind.name}, but the module declares the type {declared!r}"
        raise _invalid(imported, reason)


def _plugin(imported: ImportedModule, kind: ModuleKind, plugins: Plugins) -> object:
    """Return the plugin object of what an entry point names."""
    target = imported.target
    definition = definition_of(target)
    if definition is not None:
        return _mount_plugin(kind.spec)(definition.mount)
    # a function implements nothing by its attributes, of which it has many
    is_routine = inspect.isroutine(target)
    if not is_routine and _has_implementation(plugins, target):
        return target
    mount = target if is_routine else getattr(target, "mount", None)
    if mount is None:
        raise _invalid(
            imported,
            f"its entry point names {type(target).__name__} {getattr(target, '__name__', target)!r}, which has no"
            f" 'mount' function, no {kind.spec.name} implementation and no decorator of the SDK",
        )
    return _mount_plugin(kind.spec)(_checked_mount(imported, mount))


class _MountPlugin:
    """A plugin of one implementation: a module's `mount` under its type's hook."""

    __slots__ = ("_mount",)

    def __init__(self, mount: MountFunction) -> None:
        self._mount = mount


@lru_cache(maxsize=32)
def _mount_plugin(spec: HookSpec[[Coordinator, Config], object]) -> type[_MountPlugin]:
    """Return the class of the plugins that implement one hook: a function for each plugin takes a session 1 KB."""

    async def implementation(
        self: _MountPlugin, coordinator: Coordinator, config: Config
    ) -> object:
        return await self._mount(coordinator, config)

    # Pluggy looks for implementations in all that a plugin names.
    names = {"__dir__": lambda _: (spec.name,), spec.name: spec.impl(implementation)}
    return type("MountPlugin", (_MountPlugin,), {"__slots__": (), **names})


def _has_implementation(plugins: Plugins, target: object) -> bool:
    return any(
        plugins.manager.parse_hookimpl_opts(target, name) is not None
        for name in dir(target)
    )


def _check_implements(
    imported: ImportedModule,
    spec: ModuleSpec,
    kind: ModuleKind,
    plugins: Plugins,
    plugin: object,
) -> None:
    """Refuse a plugin that implements hooks, but not the one of the section it stands in."""
    implemented = plugins.hooks_of(plugin)
    only_surrounds = kind.mount_point == "hooks" and plugins.surrounds(plugin)
    if implemented and kind.spec.name not in implemented and not only_surrounds:
        has = ", ".join(sorted(implemented))
        raise _invalid(
            imported, f"{spec.path} needs {kind.spec.name}, but it implements {has}"
        )


def _checked_mount(imported: ImportedModule, mount: object) -> MountFunction:
    if not inspect.iscoroutinefunction(mount):
        reason = "'mount' is not a coroutine function; write 'async def mount(coordinator, config)'"
        raise _invalid(imported, reason)
    try:
        # here and not at the call, where the `TypeError` would seem to be the module's
        inspect.signature(mount).bind(None, {})
    except TypeError as error:
        raise _invalid(
            imported, f"'mount' is called with (coordinator, config), but {error}"
        ) from error
    return cast("MountFunction", mount)
