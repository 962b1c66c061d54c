"""The modules that can be loaded, as a person asks for them; nothing is imported to list them."""

from __future__ import annotations

import attrs

from amplifier.kernel.modules.loader import ModuleLoader
from amplifier_sdk.hookspecs import KINDS

__all__ = ["InstalledModule", "ModuleType", "list_modules", "list_types"]


@attrs.frozen(kw_only=True)
class InstalledModule:
    """A module: its id, the type that its id suggests, what provides it, and what its entry point names.

    `location` is the folder of the distribution's metadata, or the project's own folder below a search path;
    `version` is `None` where the metadata's name has none.
    """

    id: str
    type: str
    distribution: str
    version: str | None
    location: str
    target: str


@attrs.frozen(kw_only=True)
class ModuleType:
    """A module type: its name, where it stands in a plan, how the ids of its modules begin."""

    name: str
    plan: str
    prefixes: tuple[str, ...]


def list_types() -> list[ModuleType]:
    """List the module types, sorted by name."""
    types = (
        ModuleType(
            name=kind.name,
            plan=f"session.{kind.section}" if kind.single else kind.section,
            prefixes=kind.prefixes,
        )
        for kind in KINDS
    )
    return sorted(types, key=lambda kind: kind.name)


def list_modules(kind: str | None = None) -> list[InstalledModule]:
    """List the modules that are installed or lie below `AMPLIFIER_MODULES`, sorted by id.

    Args:
        kind: only modules of this type.
    """
    modules = (
        InstalledModule(
            id=found.id,
            type=found.type,
            distribution=found.distribution or "",
            version=found.version,
            location=found.location or "",
            target=found.target,
        )
        for found in ModuleLoader().discover()
    )
    return [module for module in modules if kind in {None, module.type}]
