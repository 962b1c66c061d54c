"""Mount points: what is mounted where, and by which module."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Final

import attrs

from amplifier.kernel.spans import current_module
from amplifier_sdk.checks import check_instance
from amplifier_sdk.errors import (
    ModuleConflictError,
    ModuleValidationError,
    did_you_mean,
)
from amplifier_sdk.hookspecs import ModuleKind

__all__ = ["RESOLVER", "MountPoints", "MountedInstance", "place_name"]

RESOLVER: Final = "module-source-resolver"
"""The mount point at which an application puts its `ModuleSourceResolver`."""

_RESOLVES: Final = ("resolve", "async_resolve")


@attrs.frozen(eq=False, repr=False)
class MountedInstance:
    """One mounted instance: the plugin object that stands for it in pluggy.

    `plugin` is the plugin of the module that mounted it, `None` for an application's own.
    """

    mount_point: str
    name: str | None
    instance: object
    module_id: str
    own_name: str | None = None  # what it is called where the plan does not name it
    plugin: object = attrs.field(factory=current_module.get)

    def __dir__(self) -> tuple[str, ...]:
        """Name nothing: pluggy looks for implementations in all that a plugin names, and this one has none."""
        return ()

    @property
    def plugin_name(self) -> str:
        """The name under which pluggy knows it."""
        return place_name(self.mount_point, self.name)


def place_name(mount_point: str, name: str | None) -> str:
    """Return the name of a place, which no module's id can be: `tools/add`, or `session/context` of a single one."""
    # Interned: all sessions with the same modules have the same places.
    return intern(f"{mount_point}/{name}" if name else f"session/{mount_point}")


@attrs.define(eq=False, repr=False)
class MountPoints:
    """The live table of mount points: a slot for single ones, a dict of instances by name for the others."""

    kinds: Sequence[ModuleKind]
    table: dict[str, object] = attrs.field(init=False)
    _modules: dict[tuple[str, str], str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.table = {
            kind.mount_point: None if kind.single else {}
            for kind in self.kinds
            if kind.name != "hook"
        }
        self.table[RESOLVER] = None

    def resolve(self, mount_point: str, name: str | None) -> tuple[str, str | None]:
        """Turn the contracts' alias `("session", "context")` into the mount point itself.

        A single mount point has one place, so a name given with it says nothing.
        """
        if mount_point == "session" and name in self.table:
            return name, None
        return mount_point, name if isinstance(
            self.table.get(mount_point), dict
        ) else None

    def add(
        self,
        mount_point: str,
        instance: object,
        name: str | None,
        module_id: str,
        own_name: str | None = None,
    ) -> MountedInstance:
        """Mount an instance.

        Raises:
            ValueError: there is no such mount point, or a name is missing.
            ModuleConflictError: the name is taken by another instance.
            ModuleValidationError: the instance lacks what its mount point promises.
        """
        slot = self._slot(mount_point)
        self._check(mount_point, instance, module_id)
        if not isinstance(slot, dict):
            self.table[mount_point] = instance
            return MountedInstance(mount_point, None, instance, module_id, own_name)
        key = name or getattr(instance, "name", None)
        if not isinstance(key, str) or not key:
            raise ValueError(
                f"A name is required to mount at {mount_point!r}: give 'name' or the instance a name"
            )
        # the same instance again is no conflict: a module may mount and return it
        if key in slot and slot[key] is not instance:
            owner = self._modules.get((mount_point, key), type(slot[key]).__qualname__)
            raise ModuleConflictError(
                module_id,
                f"the name {key!r} at {mount_point!r} is taken by {owner!r}; give one an 'instance_id'",
            )
        slot[key] = instance
        self._modules[mount_point, key] = module_id
        return MountedInstance(mount_point, key, instance, module_id, own_name)

    def remove(self, mount_point: str, name: str | None) -> None:
        """Take an instance away; a name that is not mounted is ignored.

        Raises:
            ValueError: there is no such mount point, or a name is missing.
        """
        slot = self._slot(mount_point)
        if not isinstance(slot, dict):
            self.table[mount_point] = None
        elif name is None:
            raise ValueError(f"A name is required to unmount from {mount_point!r}")
        else:
            slot.pop(name, None)

    def get(self, mount_point: str, name: str | None) -> object:
        """Return the instance of a single mount point, the live dict of another, or one of its instances.

        Raises:
            ValueError: there is no such mount point.
        """
        slot = self._slot(mount_point)
        if isinstance(slot, dict) and name is not None:
            return slot.get(name)
        return slot

    def _slot(self, mount_point: str) -> object:
        if mount_point == "hooks":
            raise ValueError(
                "Handlers are not mounted: register them on 'coordinator.hooks'"
            )
        if mount_point not in self.table:
            known = list(self.table)
            hint = did_you_mean(mount_point, known) or f"; known: {', '.join(known)}"
            raise ValueError(f"Unknown mount point {mount_point!r}{hint}")
        return self.table[mount_point]

    def _check(self, mount_point: str, instance: object, module_id: str) -> None:
        if mount_point == RESOLVER and not any(
            callable(getattr(instance, name, None)) for name in _RESOLVES
        ):
            reason = f"{type(instance).__qualname__} is no module source resolver: it has no method 'resolve'"
            raise ModuleValidationError(module_id, reason)
        for kind in self.kinds:
            if kind.mount_point == mount_point and (
                findings := check_instance(kind.name, instance, kind.protocol)
            ):
                lacks = "; ".join(map(str, findings))
                raise ModuleValidationError(
                    module_id,
                    f"{type(instance).__qualname__} is no {kind.name}: {lacks}",
                )
