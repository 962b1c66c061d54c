"""Which files of a project would run, be imported, say what to connect to, or give a model orders: by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["PROJECT_FILES"]

PROJECT_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "agents": (".amplifier/agents", ".claude/agents"),
    "commands": (".amplifier/commands", ".claude/commands"),
    "environment": (".env", ".env.local"),
    "hooks": (
        ".amplifier/hooks",
        ".claude/hooks",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
    "instructions": ("AGENTS.md", "CLAUDE.md"),
    "mcp": (".mcp.json", ".amplifier/mcp.json", ".amplifier/mcp.yaml"),
    "modules": (".amplifier/modules",),
    "plugins": (".amplifier/plugins",),
    "profiles": (
        ".amplifier/profiles",
        ".amplifier/collections",
        ".amplifier/collections.lock",
        ".amplifier/bundles",
    ),
    "settings": (".amplifier/settings.yaml", ".amplifier/settings.local.yaml"),
    "skills": (".amplifier/skills", ".claude/skills"),
}
"""Where each kind stands in a project's folder. What one file names (a script, a module) is an item of its own."""
