"""Files of a project that no module of a session reads, so that their silence is not taken for their effect."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.plan_entries import named_modules
from amplifier_kit.trust import PROJECT_FILES
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["UnreadFile", "find_unread_files"]

_READERS: Final[Mapping[str, str]] = {
    "hooks": "hooks-shell",
    "mcp": "tool-mcp",
    "plugins": "hooks-shell",
    "skills": "tool-skills",
}
"""The module that reads each kind of a project's files; the kinds that are not here are the application's."""


@attrs.frozen
class UnreadFile:
    """A file or folder of the project, by its path there, and the module that would read it."""

    path: str
    module: str

    @property
    def remedy(self) -> str:
        """The command that lets new sessions read it."""
        if self.module == _READERS["mcp"]:
            # It shows what would be connected to, and asks.
            return "amplifier mcp add"
        return f"amplifier module add {self.module}"


def find_unread_files(root: Path, plan: Mapping[str, JSONValue]) -> list[UnreadFile]:
    """Return the files of a project that would take effect if the plan had the module that reads them.

    Args:
        root: the project's folder.
        plan: the session's mount plan.
    """
    mounted = {entry.get("module") for _, entry in named_modules(plan)}
    return [
        UnreadFile(path, module)
        for kind, module in _READERS.items()
        if module not in mounted
        for path in PROJECT_FILES[kind]
        if (root / path).exists()
    ]
