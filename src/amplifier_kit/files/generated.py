"""Names of files and folders that programs make again: nothing is lost where one is removed or written over."""

from __future__ import annotations

from typing import Final

__all__ = ["is_generated"]

_NAMES: Final = frozenset({
    "__pycache__", ".cache", ".coverage", ".mypy_cache", ".next", ".nox", ".nuxt", ".parcel-cache", ".pytest_cache",
    ".ruff_cache", ".tox", ".turbo", ".venv", "CMakeFiles", "bower_components", "build", "coverage", "dist", "htmlcov",
    "node_modules", "obj", "out", "target", "temp", "tmp", "venv",
})  # fmt: skip
_SUFFIXES: Final = (
    ".bak", ".class", ".egg-info", ".gcda", ".gcno", ".log", ".o", ".obj", ".orig", ".out", ".pyc", ".pyo", ".rej",
    ".swp", ".temp", ".tmp", ".tsbuildinfo", "~",
)  # fmt: skip


def is_generated(name: str) -> bool:
    """Whether a name says that what has it can be made again.

    Args:
        name: one part of a path.
    """
    return name in _NAMES or name.endswith(_SUFFIXES)
