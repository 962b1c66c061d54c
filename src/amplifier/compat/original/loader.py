"""The module loader: the kernel's own."""

from __future__ import annotations

from amplifier.kernel.modules.loader import AmplifierModuleLoader, ModuleLoader
from amplifier_sdk.errors import ModuleValidationError

__all__ = ["AmplifierModuleLoader", "ModuleLoader", "ModuleValidationError"]
