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
    from amplifier_sdk.redaction import Redactor

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


def _strict_redactor() -> Redactor:
    from amplifier_kit.redaction import StrictRedactor  # few processes report anything

    return StrictRedactor()


if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name otherwise
    _load = load_from(__name__, _HOME)

    def __getattr__(name: str) -> object:
        """Load a public name, and let the kernel's reports be redacted."""
        from amplifier.kernel.reports import redact_reports_by

        redact_reports_by(_strict_redactor, default=True)
        return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
