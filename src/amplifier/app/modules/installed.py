"""The modules that can be loaded, as a person asks for them; nothing is imported to list them."""

from __future__ import annotations

from amplifier.kernel.modules.loader import ModuleInfo, ModuleLoader

__all__ = ["list_modules"]


def list_modules(kind: str | None = None) -> list[ModuleInfo]:
    """List the modules that are installed or lie below `AMPLIFIER_MODULES`, sorted by id.

    Args:
        kind: only modules of this type.
    """
    found = ModuleLoader().discover()
    return [module for module in found if kind in {None, module.type}]
