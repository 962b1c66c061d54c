"""The typed façade over one pluggy manager per session: it sets up, and is never in the turn.

Modules are plugins with hookimpls; every mounted instance is a plugin as well, and unregistering it from
pluggy unmounts it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import ModuleType

import attrs
import pluggy

from amplifier.kernel.mounts import Mounted
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import HookspecError, ModuleConflictError
from amplifier_sdk.hookspecs import KINDS, PROJECT, ModuleKind
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["MountFunction", "Plugins"]

MountFunction = Callable[[Coordinator, Mapping[str, JSONValue]], Awaitable[object]]
"""What a module's entry point comes down to: `mount(coordinator, config)`."""


class _Manager(pluggy.PluginManager):
    """Tells who was unregistered, so that unregistering a mounted instance unmounts it."""

    def __init__(self, on_unregister: Callable[[object], None]) -> None:
        super().__init__(PROJECT)
        self._on_unregister = on_unregister

    def unregister(self, plugin: object = None, name: str | None = None) -> object:
        gone = super().unregister(plugin=plugin, name=name)
        self._on_unregister(gone)
        return gone

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        # A mounted instance takes part by its name alone, and no implementation has a name of Python's own:
        # pluggy looks each name up in all classes of a plugin, which is most of what registering one costs.
        skipped = name.startswith("__") or isinstance(plugin, Mounted)
        return None if skipped else super().parse_hookimpl_opts(plugin, name)

    def parse_hookspec_opts(self, module_or_class: ModuleType | type, name: str) -> pluggy.HookspecOpts | None:
        return None if name.startswith("__") else super().parse_hookspec_opts(module_or_class, name)


@attrs.define(eq=False)
class Plugins:
    """A session's plugins: modules by id, mounted instances by mount point and name."""

    kinds: Sequence[ModuleKind] = KINDS
    on_unmount: Callable[[Mounted], None] = lambda _: None
    manager: pluggy.PluginManager = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.manager = _Manager(self._unregistered)
        for kind in self.kinds:
            kind.spec.add_to(self.manager)

    def kind(self, name: str) -> ModuleKind | None:
        """Return a module type by its name."""
        return next((kind for kind in self.kinds if kind.name == name), None)

    def register_module(self, plugin_name: str, plugin: object) -> None:
        """Register a module's plugin object, with every implementation checked against its spec.

        Raises:
            HookspecError: an implementation does not fit; names the plugin and the spec.
            ModuleConflictError: the name or the object is registered already.
        """
        try:
            self.manager.register(plugin, name=plugin_name)
            self.manager.check_pending()
        except pluggy.PluginValidationError as error:
            self._withdraw(plugin)
            raise HookspecError(f"{plugin_name}: {error}") from error
        except ValueError as error:
            raise ModuleConflictError(plugin_name, str(error)) from error
        try:
            self._check(plugin_name, plugin)
        except HookspecError:
            self._withdraw(plugin)
            raise

    def register_mounted(self, mounted: Mounted) -> None:
        """Register a mounted instance; the one that stood at its place before is forgotten."""
        known = self.manager.get_plugin(mounted.plugin_name)
        if isinstance(known, Mounted) and known.instance is mounted.instance:
            return
        if known is not None:
            self.manager.unregister(name=mounted.plugin_name)
        self.manager.register(mounted, name=mounted.plugin_name)

    def forget_mounted(self, mount_point: str, name: str | None) -> bool:
        """Unregister the instance at a place, which unmounts it; return whether there was one."""
        plugin_name = f"{mount_point}/{name}" if name else mount_point
        if not self.manager.has_plugin(plugin_name):
            return False
        self.manager.unregister(name=plugin_name)
        return True

    def _check(self, plugin_name: str, plugin: object) -> None:
        """Refuse what pluggy accepts and we cannot use: implementations that are not coroutine functions."""
        for kind in self.kinds:
            for implementation in getattr(self.manager.hook, kind.spec.name).get_hookimpls():
                if implementation.plugin is plugin:
                    kind.spec.check(implementation.function, plugin_name)

    def _withdraw(self, plugin: object) -> None:
        if self.manager.is_registered(plugin):
            self.manager.unregister(plugin)

    def _unregistered(self, plugin: object) -> None:
        if isinstance(plugin, Mounted):
            self.on_unmount(plugin)
