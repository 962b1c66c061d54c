"""The coordinator of the original.

`ModuleCoordinator.over(coordinator)` is the coordinator of a session as modules of the original see it. It shares all
that the session's has, so what one module sets on it another finds; what is mounted through it is adapted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import cast

from amplifier.compat.capabilities import (
    GUARDS,
    adapted_capability,
    held_approval,
    shown_capability,
)
from amplifier.compat.doubles import InstanceAttribute
from amplifier.compat.mounts import MountTable, adapted, shown
from amplifier.compat.original.hooks import HookRegistry
from amplifier.compat.original.models import HookResult
from amplifier.compat.results import native_decision, original_result
from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.coordinator import DONE
from amplifier.kernel.coordinator import ModuleCoordinator as KernelCoordinator
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.plans.plan import SessionSettings
from amplifier.kernel.reports import report
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.kernel.spans import current_module
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem

__all__ = ["ModuleCoordinator"]


class ModuleCoordinator(KernelCoordinator):
    """A session's parts by name; one that is made by this constructor holds whatever is mounted, as it is.

    Some of its attributes are named here again: doubles that are specified by the class have those alone.

    Args:
        session: any object with `session_id`, `parent_id` and `config`.
        approval_system: asks the person.
        display_system: shows messages to the person.
    """

    cancellation: CancellationToken = InstanceAttribute()  # type: ignore[assignment]  # instances have it
    config: Mapping[str, object] = InstanceAttribute()  # type: ignore[assignment]  # likewise
    loader: ModuleLoader | None = InstanceAttribute()  # type: ignore[assignment]
    parent_id: str | None = InstanceAttribute()  # type: ignore[assignment]
    session: AmplifierSession | None = InstanceAttribute()  # type: ignore[assignment]
    session_id: str = InstanceAttribute()  # type: ignore[assignment]
    session_state: dict[str, object] = InstanceAttribute()  # type: ignore[assignment]

    def __init__(
        self,
        session: object = None,
        approval_system: ApprovalSystem | None = None,
        display_system: DisplaySystem | None = None,
        **given: object,
    ) -> None:
        fields = {
            name: given.get(name, getattr(session, name, None))
            for name in ("session_id", "parent_id", "config")
        }
        # a session-like object may have a pydantic model
        config = fields["config"]
        write: object = getattr(config, "model_dump", None)
        if callable(write):
            config = write()
        config = cast("dict[str, object]", config or {})
        super().__init__(
            None,
            approval_system,
            display_system,
            session_id=str(fields["session_id"] or "unknown"),
            parent_id=cast("str | None", fields["parent_id"]),
            config=config,
            settings=_settings(config),
        )
        self.session = session  # type: ignore[assignment]  # any object will do
        self.loader = getattr(session, "loader", None)
        self._mounts.table["hooks"] = self.hooks

    @classmethod
    def over(cls, coordinator: KernelCoordinator) -> ModuleCoordinator:
        """Show a session's coordinator to modules of the original."""
        view = object.__new__(_Shown)
        view.__dict__ = coordinator.__dict__
        return view

    @property
    def hooks(self) -> HookRegistry:
        """The hook registry; as long as a loop runs, as that loop receives it."""
        return HookRegistry.over(super().hooks)

    def mount(
        self, mount_point: str, module: object, name: str | None = None
    ) -> Awaitable[None]:
        """Mount an instance in place of one that has its name; it is there when the call returns.

        Raises:
            ValueError: there is no such mount point, or a name is missing.
            TypeError: the name is no text.
        """
        _refuse_hooks(mount_point)
        point, key = self._mounts.resolve(mount_point, name)
        slot = self._mounts.get(point, None)
        if isinstance(slot, dict):
            slot[_name_of(point, module, key)] = module
        else:
            self._mounts.table[point] = module
        return DONE

    async def unmount(self, mount_point: str, name: str | None = None) -> None:
        """Take an instance away; one that is not there, and handlers, are left as they are.

        Raises:
            ValueError: there is no such mount point, or a name is missing.
        """
        if mount_point == "hooks":
            return
        if name is None and isinstance(self._mounts.table.get(mount_point), dict):
            raise ValueError(f"Name required to unmount from {mount_point!r}")
        await super().unmount(mount_point, name)

    @property
    def _current_turn_injections(self) -> int:
        return self.host.decisions.injected.tokens

    @_current_turn_injections.setter
    def _current_turn_injections(self, tokens: int) -> None:
        self.host.decisions.injected.tokens = tokens

    async def process_hook_result(  # type: ignore[override]  # the original's results
        self, result: HookResult, event: str, hook_name: str = "unknown"
    ) -> HookResult:
        """Carry out what handlers decided."""
        decided = native_decision(result)
        return original_result(
            await super().process_hook_result(decided, event, hook_name)
        )


class _Shown(ModuleCoordinator):
    """The coordinator of a session: what is mounted on it is adapted, what is read of it is shown."""

    @property
    def mount_points(self) -> dict[str, object]:
        """The live table of mount points; modules may write into it."""
        return cast("dict[str, object]", MountTable(self, self._mounts.table))

    def get(self, mount_point: str, name: str | None = None) -> object:
        """Return what is mounted: a single point's instance, another's live table, or one of its instances."""
        found = super().get(mount_point, name)
        if name is None and isinstance(found, dict):
            return self.mount_points[mount_point]
        return shown(found)

    def mount(
        self, mount_point: str, module: object, name: str | None = None
    ) -> Awaitable[None]:
        """Mount an instance in place of one that has its name."""
        _refuse_hooks(mount_point)
        point, key = self._mounts.resolve(mount_point, name)
        slot = self._mounts.table.get(point)
        if isinstance(slot, dict):
            key = _name_of(point, module, key)
            # the kernel refuses a taken name, and modules rely on replacing
            if key in slot and shown(slot[key]) is not module:
                report("mount.replaced", mount_point=point, name=key)
                self.plugins.forget_mounted(point, key)
                self._mounts.remove(point, key)
        instance = adapted(point, module, self, key or "")
        return KernelCoordinator.mount(self, mount_point, instance, name)

    def register_capability(
        self, name: str, value: object, *, inherited: bool = True
    ) -> None:
        """Offer a value to modules, in place of an earlier one of the name.

        Raises:
            ValueError: a module offers one of those that guard the session.
        """
        if name in GUARDS and self._is_module(current_module.get()):
            raise ValueError(
                f"The capability {name!r} guards the session; a module of the original cannot replace it"
            )
        earlier = super().get_capability(name)
        super().register_capability(
            name, adapted_capability(name, value, earlier), inherited=inherited
        )

    def get_capability(self, name: str) -> object:
        """Return a capability, or `None`."""
        return shown_capability(name, super().get_capability(name))

    @property
    def approval_system(self) -> ApprovalSystem | None:
        """Who asks the person; no deadline runs while it does."""
        return held_approval(super().approval_system)

    @approval_system.setter
    def approval_system(self, system: ApprovalSystem | None) -> None:
        self.decisions.approval = system


def _refuse_hooks(mount_point: str) -> None:
    if mount_point == "hooks":
        raise ValueError(
            "Hooks should be registered with 'coordinator.hooks.register', not mounted"
        )


def _settings(config: Mapping[str, object]) -> SessionSettings:
    """Return the settings of a coordinator by itself: nothing limits injections but its own configuration."""
    session = config.get("session")
    given = session if isinstance(session, Mapping) else {}
    return SessionSettings(
        injection_size_limit=given.get("injection_size_limit"),
        injection_budget_per_turn=given.get("injection_budget_per_turn"),
    )


def _name_of(point: str, module: object, name: str | None) -> str:
    """Return the name under which an instance is mounted.

    Raises:
        ValueError: neither it nor the caller has one.
        TypeError: it is no text.
    """
    name = name or getattr(module, "name", None)
    if not name:
        raise ValueError(f"Name required for {point!r}")
    if not isinstance(name, str):
        raise TypeError(f"A name at {point!r} is text; got {name!r:.200}")
    return name
