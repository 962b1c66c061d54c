"""What is mounted, on either side of the boundary, and the live table of mount points as original modules see it."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from typing import Final, cast

from amplifier.compat.contexts import AdaptedContext, OriginalContext, ShownContext
from amplifier.compat.loops import AdaptedLoop, OriginalLoop
from amplifier.compat.providers import AdaptedProvider, OriginalProvider, ShownProvider
from amplifier.compat.tools import AdaptedTool, OriginalTool, ShownTool
from amplifier.kernel.coordinator import ModuleCoordinator as KernelCoordinator
from amplifier_sdk.contracts import ContextManager, Provider, Tool

__all__ = ["MountTable", "adapted", "mounted_alone", "shown"]

_ADAPTED: Final = (AdaptedContext, AdaptedLoop, AdaptedProvider, AdaptedTool)
_SHOWN: Final = (ShownContext, ShownProvider, ShownTool)


def adapted(
    mount_point: str, instance: object, coordinator: object, name: str = ""
) -> object:
    """Return an instance of the original as the session calls it; one of the session is itself again.

    Args:
        mount_point: where it is mounted.
        instance: what is mounted.
        coordinator: what a loop of the original is called with.
        name: what it is mounted under, for one that has no name of its own.
    """
    # what a module got from the session it may mount again under another name
    if isinstance(instance, _SHOWN):
        return instance.native
    if isinstance(instance, _ADAPTED) or instance is None:
        return instance
    match mount_point:
        case "tools":
            return AdaptedTool(cast("OriginalTool", instance), name)
        case "providers":
            return AdaptedProvider(cast("OriginalProvider", instance))
        case "context":
            return AdaptedContext(cast("OriginalContext", instance))
        case "orchestrator":
            return AdaptedLoop(cast("OriginalLoop", instance), coordinator)
        case _:
            return instance


def shown(instance: object) -> object:
    """Return what is mounted as modules of the original see it: their own instances are the very objects."""
    if isinstance(instance, _ADAPTED):
        return instance.original
    if isinstance(instance, Provider):
        return ShownProvider(instance)
    if isinstance(instance, Tool):
        return ShownTool(instance)
    if isinstance(instance, ContextManager):
        return ShownContext(instance)
    return instance


def mounted_alone(instance: object, coordinator: object) -> object:
    """Return an instance that a module returned as the session calls it; `None` where it is mounted or is none."""
    point = _point_of(instance)
    if point is None or not isinstance(coordinator, KernelCoordinator):
        return None
    found = coordinator._mounts.table[point]  # noqa: SLF001  # the table itself, unadapted
    slots = found.values() if isinstance(found, dict) else (found,)
    # most modules that return their instance have mounted it as well
    if any(shown(each) is instance for each in slots):
        return None
    return adapted(point, instance, coordinator)


def _point_of(instance: object) -> str | None:
    """Return where an instance would be mounted, by what it has."""
    for point, protocol in _PROTOCOLS.items():
        if isinstance(instance, protocol):
            return point
    return None


_PROTOCOLS: Final = {"providers": Provider, "context": ContextManager, "tools": Tool}


class _Slot(UserDict[str, object]):
    """The instances of one mount point, live."""

    def __init__(
        self, point: str, live: dict[str, object], coordinator: object
    ) -> None:
        self._point = point
        self._coordinator = coordinator
        self.data = live

    def __getitem__(self, key: str) -> object:
        return shown(self.data[key])

    def __setitem__(self, key: str, item: object) -> None:
        self.data[key] = adapted(self._point, item, self._coordinator, key)

    def copy(self) -> dict[str, object]:  # type: ignore[override]  # a plain dict is what modules want
        """Return a dict of its own."""
        return dict(self.items())


class MountTable(_Slot):
    """The table of mount points: its slots show, and take, instances of the original."""

    def __init__(self, coordinator: object, live: dict[str, object]) -> None:
        super().__init__("", live, coordinator)

    def __getitem__(self, key: str) -> object:
        if key == "hooks":
            return self._coordinator.hooks  # type: ignore[attr-defined]  # it has one
        found = self.data[key]
        if isinstance(found, dict):
            return _Slot(key, found, self._coordinator)
        return shown(found)

    def __setitem__(self, key: str, item: object) -> None:
        self.data[key] = adapted(key, item, self._coordinator)

    def __iter__(self) -> Iterator[str]:
        return iter((*self.data, "hooks"))

    def __len__(self) -> int:
        return len(self.data) + 1

    def __contains__(self, key: object) -> bool:
        return key == "hooks" or key in self.data
