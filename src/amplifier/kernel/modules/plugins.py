"""The typed façade over one pluggy manager per session: it sets up, and is never in the turn.

Modules are plugins with hookimpls; every mounted instance is a plugin as well. Unregistering an instance from
pluggy unmounts it; unregistering a module takes away all that it mounted and the handlers it registered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType

import attrs
import pluggy

from amplifier.kernel.channels import Contributor
from amplifier.kernel.modules.mounts import Mounted, place_name
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import HookspecError, ModuleConflictError, did_you_mean
from amplifier_sdk.hookspecs import KINDS, PROJECT, ModuleKind, amplifier_contributions
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["MountFunction", "Plugins"]

MountFunction = Callable[[Coordinator, Mapping[str, JSONValue]], Awaitable[object]]
"""What a module's entry point comes down to: `mount(coordinator, config)`."""


class _Manager(pluggy.PluginManager):
    """Reports who was unregistered, so that unregistering a mounted instance unmounts it."""

    def __init__(self, on_unregister: Callable[[object], None]) -> None:
        super().__init__(PROJECT)
        self._on_unregister = on_unregister

    def unregister(self, plugin: object = None, name: str | None = None) -> object:
        gone = super().unregister(plugin=plugin, name=name)
        self._on_unregister(gone)
        return gone

    def parse_hookimpl_opts(
        self, plugin: object, name: str
    ) -> pluggy.HookimplOpts | None:
        # A mounted instance takes part by its name alone, and no implementation has a name of Python's own:
        # pluggy looks each name up in all classes of a plugin, which is most of what registering one costs.
        skipped = name.startswith("__") or isinstance(plugin, Mounted)
        if skipped:
            return None
        return super().parse_hookimpl_opts(plugin, name)

    def parse_hookspec_opts(
        self, module_or_class: ModuleType | type, name: str
    ) -> pluggy.HookspecOpts | None:
        if name.startswith("__"):
            return None
        return super().parse_hookspec_opts(module_or_class, name)


@attrs.define(eq=False, repr=False)
class Plugins:
    """A session's plugins: modules by id, mounted instances by mount point and name."""

    kinds: Sequence[ModuleKind] = KINDS
    on_unmount: Callable[[Mounted], None] = lambda _: None
    on_withdraw: Callable[[object], None] = lambda _: None
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
            self._know_contributions()
            self.manager.check_pending()
        except pluggy.PluginValidationError as error:
            self._withdraw(plugin)
            raise self._refusal(plugin_name, plugin, error) from error
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
        plugin_name = place_name(mount_point, name)
        if not self.manager.has_plugin(plugin_name):
            return False
        self.manager.unregister(name=plugin_name)
        return True

    def contributors(
        self, coordinator: Coordinator, channel: str
    ) -> Iterator[Contributor]:
        """Return the plugins that implement `amplifier_contributions`, in the order of their registration.

        pluggy's `tryfirst` and `trylast` go before and behind the others.
        """
        given = {"coordinator": coordinator, "channel": channel}
        found = self._implementations(amplifier_contributions.name)
        for implementation in sorted(
            found, key=lambda entry: entry.trylast - entry.tryfirst
        ):
            yield Contributor(
                implementation.plugin_name,
                partial(_contribution, implementation, given),
            )

    def _know_contributions(self) -> None:
        """Add the spec once a plugin implements it: few do, and a session that needs none is cheaper without."""
        relay = getattr(self.manager.hook, amplifier_contributions.name, None)
        if relay is not None and not relay.has_spec():
            amplifier_contributions.add_to(self.manager)

    def _implementations(self, hook: str) -> list[pluggy.HookImpl]:
        relay = getattr(self.manager.hook, hook, None)
        return [] if relay is None else relay.get_hookimpls()

    def _check(self, plugin_name: str, plugin: object) -> None:
        """Refuse what pluggy accepts and we cannot use: implementations that are not coroutine functions."""
        for name, check in self._checks().items():
            for implementation in self._implementations(name):
                if implementation.plugin is plugin:
                    check(implementation.function, plugin_name)

    def _checks(self) -> dict[str, Callable[[object, str], None]]:
        """Return what checks an implementation of each hook."""
        checks = {kind.spec.name: kind.spec.check for kind in self.kinds}
        return {**checks, amplifier_contributions.name: amplifier_contributions.check}

    def _refusal(
        self, plugin_name: str, plugin: object, error: pluggy.PluginValidationError
    ) -> HookspecError:
        """Say why pluggy refused a plugin: which hook there is not, or what of an implementation does not fit."""
        checks = self._checks()
        for name in dir(plugin):
            options = self.manager.parse_hookimpl_opts(plugin, name)
            if options is None:
                continue
            hook = options["specname"] or name
            if hook not in checks:
                hint = (
                    did_you_mean(hook, list(checks))
                    or f"; the hooks are {', '.join(checks)}"
                )
                return HookspecError(f"{plugin_name}: there is no hook {hook!r}{hint}")
            try:
                checks[hook](getattr(plugin, name), plugin_name)
            except HookspecError as refusal:
                return refusal
        return HookspecError(f"{plugin_name}: {error}")

    def _withdraw(self, plugin: object) -> None:
        if self.manager.is_registered(plugin):
            self.manager.unregister(plugin)

    def _unregistered(self, plugin: object) -> None:
        if isinstance(plugin, Mounted):
            self.on_unmount(plugin)
        elif plugin is not None:  # pluggy says so of a name that it does not know
            self._unmount_all(plugin)

    def _unmount_all(self, module: object) -> None:
        """Unmount what a module mounted, the last first, and let its handlers be taken back."""
        for _, plugin in reversed(self.manager.list_name_plugin()):
            if isinstance(plugin, Mounted) and plugin.plugin is module:
                self.manager.unregister(plugin)
        self.on_withdraw(module)


def _contribution(
    implementation: pluggy.HookImpl, given: Mapping[str, object]
) -> object:
    """Call an implementation; one that an application registered by itself is checked only here.

    Raises:
        HookspecError: it is not an async function, or asks for something else.
    """
    amplifier_contributions.check(implementation.function, implementation.plugin_name)
    names = (*implementation.argnames, *implementation.kwargnames)
    return implementation.function(**{name: given[name] for name in names})
