"""Where modules come from: the source protocol, its errors, and the paths of a configuration."""

from __future__ import annotations

from collections.abc import Iterable

from amplifier_sdk.contracts import ModuleSource, ModuleSourceResolver
from amplifier_sdk.errors import ModuleLoadError, ModuleNotFoundError

__all__ = [
    "FileSystemModuleSource",
    "ModuleLoadError",
    "ModuleNotFoundError",
    "ModuleSource",
    "ModuleSourceResolver",
]


class FileSystemModuleSource:
    """The folders that modules are searched in."""

    def __init__(self, paths: Iterable[str] | None = None) -> None:
        self.paths: list[str] = list(paths or ())

    def get_module_paths(self) -> list[str]:
        """Return the folders."""
        return list(self.paths)

    def get_mention_mappings(self) -> dict[str, str]:
        """Return the folders that mentions name by a prefix: none."""
        return {}
