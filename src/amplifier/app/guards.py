"""What a person trusted of a project to guard a session: without it the session does not begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier.app.session_plan import Composition
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["require_guards"]

_HOOKS: Final = "hooks-shell"
"""The module that runs the hooks and plugins of a project."""


def require_guards(composition: Composition) -> None:
    """Refuse a session that would run without what a person trusted to guard it; blocks.

    Raises:
        ConfigError: hooks, plugins or settings that were trusted changed, or are gone; names the files and remedies.
    """
    problems = [
        Problem(
            f"{kind} of this folder",
            f"{told}; look at it and run 'amplifier trust', or 'amplifier trust revoke {kind}' to work without it",
        )
        for kind in _kinds_of(composition)
        if (told := composition.project.lost(kind))
    ]
    if problems:
        raise ConfigError(problems, subject="session's guards")


def _kinds_of(composition: Composition) -> list[str]:
    """Return the kinds of files of a project that the session would use as guards."""
    hooks = composition.plan.get("hooks")
    if isinstance(hooks, list | tuple):
        entries = hooks
    else:
        entries = ()
    modules = [
        entry.get("module") if isinstance(entry, Mapping) else entry
        for entry in entries
    ]
    if composition.is_plan_file:
        kinds = []
    else:
        kinds = ["settings"]
    if _HOOKS in modules:
        return [*kinds, "hooks", "plugins"]
    return kinds
