"""Where modules come from: the source protocol and its errors."""

from __future__ import annotations

from amplifier_sdk.contracts import ModuleSource, ModuleSourceResolver
from amplifier_sdk.errors import ModuleLoadError, ModuleNotFoundError

__all__ = [
    "ModuleLoadError",
    "ModuleNotFoundError",
    "ModuleSource",
    "ModuleSourceResolver",
]
