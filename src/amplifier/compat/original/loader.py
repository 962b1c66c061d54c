"""The module loader: the kernel's own, which lists what it finds as the original's models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from amplifier.compat.original.models import ModuleInfo
from amplifier.kernel.modules.loader import ModuleLoader as KernelLoader
from amplifier.kernel.modules.loader import MountModule
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ModuleValidationError
from amplifier_sdk.hookspecs import KINDS
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "TYPE_TO_MOUNT_POINT",
    "AmplifierModuleLoader",
    "ModuleInfo",
    "ModuleLoader",
    "ModuleValidationError",
]

TYPE_TO_MOUNT_POINT: dict[str, str] = {
    **{kind.name: kind.mount_point for kind in KINDS},
    "resolver": "module-source-resolver",
}
"""Where modules of each type are mounted."""


class ModuleLoader(KernelLoader):
    """Finds and loads modules."""

    def discover(self) -> list[ModuleInfo]:  # type: ignore[override]  # the original's model
        """List the modules that could be loaded; nothing is imported."""
        return [
            ModuleInfo(
                id=found.id,
                name=found.id.replace("-", " ").title(),
                version=found.version or "unknown",
                type=found.type if found.type in TYPE_TO_MOUNT_POINT else "tool",  # type: ignore[arg-type]  # one of them
                mount_point=found.mount_point or "tools",
                description=f"Module: {found.id}",
            )
            for found in super().discover()
        ]

    async def load(
        self,
        module_id: str,
        config: Mapping[str, JSONValue] | None = None,
        source_hint: object = None,
        coordinator: Coordinator | None = None,
        **hints: object,
    ) -> MountModule:
        """Import a module, and return the async function that mounts it on a coordinator.

        Raises:
            ModuleNotFoundError: nothing has the id.
            ModuleLoadError: it cannot be imported or mounted.
        """
        return await super().load(
            module_id, config, source_hint, coordinator=coordinator, **hints
        )

    @property
    def _added_paths(self) -> list[str]:
        """The folders that `load` added to `sys.path`; applications hand them on to what they start."""
        return list(self._paths.folders)

    async def initialize(
        self, module: Callable[[object], Awaitable[object]], coordinator: object
    ) -> Callable[[], object] | None:
        """Mount a loaded module, and return its clean-up."""
        return cast("Callable[[], object] | None", await module(coordinator))


AmplifierModuleLoader = ModuleLoader
"""The loader under the name of the contracts."""
