"""The typed façade over one pluggy manager per session: it sets up, and is never in the turn.

Modules are plugins with hookimpls; every mounted instance is a plugin as well. Unregistering an instance from
pluggy unmounts it; unregistering a module takes away all that it mounted and the handlers it registered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from types import ModuleType
from typing import Final, cast

import attrs
import pluggy

from amplifier.kernel.channels import Contributor
from amplifier.kernel.modules.mounts import MountedInstance, place_name
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import HookspecError, ModuleConflictError, did_you_mean
from amplifier_sdk.hookspecs import (
    KINDS,
    PROJECT,
    ModuleKind,
    amplifier_contributions,
    amplifier_hook,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.middleware import SPECS, Point

__all__ = ["MountFunction", "Plugins"]

_GUARD: Final = amplifier_hook.name
"""The hook whose plugins register handlers, which decide for a session's children as well."""

_AROUND: Final = {spec.name: point for point, spec in SPECS.items()}
"""The points by the hooks whose implementations surround them; a plugin that only does so is one with handlers."""

_BESIDE: Final = (amplifier_contributions, *SPECS.values())
"""The hooks that any plugin may implement beside the one that mounts it."""

MountFunction = Callable[[Coordinator, Mapping[str, JSONValue]], Awaitable[object]]
"""What a module's entry point comes down to: `mount(coordinator, config)`."""


class _Manager(pluggy.PluginManager):
    """pluggy's manager, whose plugins are checked when they come and unmounted when they go."""

    def __init__(self, plugins: Plugins) -> None:
        super().__init__(PROJECT)
        self._plugins = plugins
        # pluggy's relay would make coroutines that nobody awaits
        self.add_hookcall_monitoring(plugins.refuse_call, _nothing)

    def add(self, plugin: object, name: str) -> str | None:
        """Register a plugin of ours, about which the application need not be asked."""
        return super().register(plugin, name)

    def register(self, plugin: object, name: str | None = None) -> str | None:
        registered = super().register(plugin, name)
        if registered is not None:
            self._plugins.accept(registered, plugin)
        return registered

    def unregister(self, plugin: object = None, name: str | None = None) -> object:
        gone = super().unregister(plugin=plugin, name=name)
        self._plugins.unregistered(gone)
        return gone

    def parse_hookimpl_opts(
        self, plugin: object, name: str
    ) -> pluggy.HookimplOpts | None:
        # A mounted instance takes part by its name alone, and no implementation has a name of Python's own:
        # pluggy looks each name up in all classes of a plugin, which is most of what registering one costs.
        skipped = name.startswith("__") or isinstance(plugin, MountedInstance)
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
    on_unmount: Callable[[MountedInstance], None] = lambda _: None
    on_withdraw: Callable[[object], None] = lambda _: None
    manager: _Manager = attrs.field(init=False)
    _given: dict[str, tuple[object, bool]] | None = None
    _is_mounted: bool = False

    def __attrs_post_init__(self) -> None:
        self.manager = _Manager(self)
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
            self.manager.add(plugin, plugin_name)
        except pluggy.PluginValidationError as error:
            raise self._refusal(plugin_name, plugin, error) from error
        except ValueError as error:
            raise ModuleConflictError(plugin_name, str(error)) from error
        self._verify(plugin_name, plugin)

    # -- what an application registers with pluggy itself

    def accept(self, plugin_name: str, plugin: object) -> None:
        """Take a plugin that was registered with the manager: it is mounted behind the plan's modules.

        Raises:
            HookspecError: an implementation does not fit, or the modules are mounted already.
        """
        self._verify(plugin_name, plugin)
        hooks = self._mounting_hooks(plugin)
        if not hooks:
            return
        if self._is_mounted:
            self.manager.unregister(plugin)
            raise HookspecError(
                f"{plugin_name}: the session's modules are mounted, so nobody would call its {', '.join(hooks)};"
                " register it before the session is initialized, or mount the instance with 'coordinator.mount'"
            )
        self._give(plugin_name, plugin, is_inherited=False)

    def inherit(self, parent: Plugins) -> None:
        """Take over what guards a parent: its plugins with handlers, and the names that are blocked.

        What its other plugins mount is the parent's alone.
        """
        for name, plugin in parent.manager.list_name_plugin():
            # this is how pluggy lists a name that was blocked
            if plugin is None:
                self.manager.set_blocked(name)
        for name, (plugin, _) in (parent._given or {}).items():
            if _GUARD in parent._mounting_hooks(plugin):
                self.manager.add(plugin, name)
                self._give(name, plugin, is_inherited=True)

    def given(self, kind: ModuleKind) -> list[tuple[str, object]]:
        """Return the application's plugins that mount something of a type, by name, in the order of their registration.

        pluggy's `tryfirst` and `trylast` go before and behind the others.
        """
        if self._given is None:
            return []
        is_guard = kind.spec.name == _GUARD
        implementations = self._implementations(kind.spec.name)
        found = [(each.plugin_name, each.plugin) for each in implementations]
        if is_guard:
            # what only surrounds implements no hook of its type
            known = dict(found)
            found += (
                (name, plugin)
                for name, (plugin, _) in self._given.items()
                if name not in known and _GUARD in self._mounting_hooks(plugin)
            )
        return [
            (name, plugin)
            for name, plugin in found
            if name in self._given and (is_guard or not self._given[name][1])
        ]

    def is_blocked(self, plugin_name: str) -> bool:
        """Whether the application blocked a plugin by pluggy's `set_blocked`."""
        return self.manager.is_blocked(plugin_name)

    def end_mounting(self) -> None:
        """Accept no more plugins of an application: those there are have been asked."""
        self._is_mounted = True

    def refuse_call(
        self, hook: str, _: Sequence[pluggy.HookImpl], __: Mapping[str, object]
    ) -> None:
        """Refuse a call of a module's hook by pluggy's relay, which cannot await.

        Raises:
            HookspecError: it is one of the hooks of modules.
        """
        if hook in self._checks():
            raise HookspecError(
                f"pluggy cannot await {hook}, so 'manager.hook.{hook}(...)' calls nothing: a session calls it while it"
                " is initialized. To call the implementations of one plugin,"
                f" write 'await amplifier_sdk.hookspecs.{hook}.call(manager, plugin, ...)'"
            )

    def _give(self, name: str, plugin: object, *, is_inherited: bool) -> None:
        if self._given is None:
            self._given = {}
        self._given[name] = plugin, is_inherited

    def _mounting_hooks(self, plugin: object) -> list[str]:
        """Return the hooks that mount something and that a plugin implements."""
        called = self.hooks_of(plugin)
        mounting = [kind.spec.name for kind in self.kinds if kind.spec.name in called]
        if not mounting and self.surrounds(plugin):
            return [_GUARD]
        return mounting

    def hooks_of(self, plugin: object) -> frozenset[str]:
        """Return the names of the hooks that a plugin implements."""
        callers = self.manager.get_hookcallers(plugin) or ()
        return frozenset(caller.name for caller in callers)

    def surrounds(self, plugin: object) -> bool:
        """Whether a plugin implements middleware."""
        return not _AROUND.keys().isdisjoint(self.hooks_of(plugin))

    def middleware_of(self, plugin: object) -> Iterator[tuple[Point, pluggy.HookImpl]]:
        """Yield what a plugin surrounds, and by which implementation."""
        for hook in self.hooks_of(plugin) & _AROUND.keys():
            for implementation in self._implementations(hook):
                if implementation.plugin is plugin:
                    yield _AROUND[hook], implementation

    # -- mounted instances

    def register_mounted(self, mounted: MountedInstance) -> None:
        """Register a mounted instance; the one that stood at its place before is forgotten."""
        known = self.manager.get_plugin(mounted.plugin_name)
        if isinstance(known, MountedInstance) and known.instance is mounted.instance:
            return
        # pluggy refuses a second plugin of one name
        if known is not None:
            self.manager.unregister(name=mounted.plugin_name)
        self.manager.add(mounted, mounted.plugin_name)

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
        for implementation in self._implementations(amplifier_contributions.name):
            yield Contributor(
                implementation.plugin_name,
                partial(_contribution, implementation, given),
            )

    def _know_specs(self) -> None:
        """Add a spec once a plugin implements it: few do, and a session that needs none is cheaper without."""
        for spec in _BESIDE:
            relay = getattr(self.manager.hook, spec.name, None)
            if relay is not None and not relay.has_spec():
                spec.add_to(self.manager)

    def _implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """Return a hook's implementations in the order of their registration, those that asked for it first or last."""
        relay = getattr(self.manager.hook, hook, None)
        if relay is None:
            return []
        return sorted(
            relay.get_hookimpls(), key=lambda entry: entry.trylast - entry.tryfirst
        )

    def _verify(self, plugin_name: str, plugin: object) -> None:
        """Refuse a registered plugin again that does not fit.

        Raises:
            HookspecError: an implementation does not fit; names the plugin and the spec.
        """
        try:
            self._know_specs()
            self.manager.check_pending()
            self._check(plugin_name, plugin)
        except pluggy.PluginValidationError as error:
            self.manager.unregister(plugin)
            raise self._refusal(plugin_name, plugin, error) from error
        # it was registered before it was checked, since pluggy finds its hooks thereby
        except HookspecError:
            self.manager.unregister(plugin)
            raise

    def _check(self, plugin_name: str, plugin: object) -> None:
        """Refuse what pluggy accepts and we cannot use: implementations that are not coroutine functions."""
        for name, check in self._checks().items():
            for implementation in self._implementations(name):
                if implementation.plugin is plugin:
                    check(implementation.function, plugin_name)

    def _checks(self) -> dict[str, Callable[[object, str], None]]:
        """Return what checks an implementation of each hook."""
        checks = {kind.spec.name: kind.spec.check for kind in self.kinds}
        return {**checks, **_CHECKS_BESIDE}

    def _refusal(
        self, plugin_name: str, plugin: object, error: pluggy.PluginValidationError
    ) -> HookspecError:
        """Say why pluggy refused a plugin: which hook there is not, or what of an implementation does not fit."""
        checks = self._checks()
        # pluggy's own message names the function and not what is wrong with it
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

    def unregistered(self, plugin: object) -> None:
        """Unmount what a plugin stood for that pluggy knows no more."""
        if self._given is not None:
            self._given = {
                name: (given, is_inherited)
                for name, (given, is_inherited) in self._given.items()
                if given is not plugin
            }
        if isinstance(plugin, MountedInstance):
            self.on_unmount(plugin)
        elif plugin is not None:  # pluggy says so of a name that it does not know
            self._unmount_all(plugin)

    def _unmount_all(self, module: object) -> None:
        """Unmount what a module mounted, the last first, and let its handlers be taken back."""
        # the list is a copy: unregistering changes the table that it came from
        for _, plugin in reversed(self.manager.list_name_plugin()):
            if isinstance(plugin, MountedInstance) and plugin.plugin is module:
                self.manager.unregister(plugin)
        self.on_withdraw(module)


def _check_middleware(point: Point, function: object, plugin: str) -> None:
    """Refuse an implementation that could not be called as all middleware is: by position.

    Raises:
        HookspecError: names the plugin, the hook and what is wrong.
    """
    spec = SPECS[point]
    spec.check(function, plugin)
    parameters = signature(cast("Callable[[], object]", function)).parameters
    given = tuple(name for name in parameters if name != "self")
    if given != spec.parameters:
        raise HookspecError(
            f"{plugin}: an implementation of {spec.name} takes ({', '.join(spec.parameters)}), in this order;"
            f" it takes ({', '.join(given)})"
        )


_CHECKS_BESIDE: Final[Mapping[str, Callable[[object, str], None]]] = {
    amplifier_contributions.name: amplifier_contributions.check,
    **{name: partial(_check_middleware, point) for name, point in _AROUND.items()},
}
"""What checks an implementation of each hook that mounts nothing."""


def _contribution(
    implementation: pluggy.HookImpl, given: Mapping[str, object]
) -> object:
    names = (*implementation.argnames, *implementation.kwargnames)
    return implementation.function(**{name: given[name] for name in names})


def _nothing(*_: object) -> None:
    """Hear the end of a hook's call, as pluggy's monitoring asks for."""
