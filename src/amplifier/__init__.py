"""The runtime: sessions made of modules, on asyncio and trio.

Names load when they are first used. What module authors write with is `amplifier_sdk`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.kernel.coordinator import ModuleCoordinator as ModuleCoordinator
    from amplifier.kernel.modules.loader import AmplifierModuleLoader as AmplifierModuleLoader
    from amplifier.kernel.modules.loader import ModuleLoader as ModuleLoader
    from amplifier.kernel.plans.plan import MountPlanValidator as MountPlanValidator
    from amplifier.kernel.sessions.session import AmplifierSession as AmplifierSession
    from amplifier.kernel.turn.registry import HookRegistry as HookRegistry

__all__ = [
    "AmplifierModuleLoader",
    "AmplifierSession",
    "HookRegistry",
    "ModuleCoordinator",
    "ModuleLoader",
    "MountPlanValidator",
]

_HOME = {
    "AmplifierModuleLoader": "kernel.modules.loader",
    "AmplifierSession": "kernel.sessions.session",
    "HookRegistry": "kernel.turn.registry",
    "ModuleCoordinator": "kernel.coordinator",
    "ModuleLoader": "kernel.modules.loader",
    "MountPlanValidator": "kernel.plans.plan",
}


if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name otherwise
    __getattr__ = load_from(__name__, _HOME, prepare="_reports")


def __dir__() -> list[str]:
    return sorted(__all__)
