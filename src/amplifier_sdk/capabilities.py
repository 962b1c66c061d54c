"""Capabilities that belong to one session alone.

What an application registers as a capability its session's children have as well, except for these: each session has
its own, which means itself. What a module registers is the session's own in any case, since a child mounts its
modules anew.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PER_SESSION"]

PER_SESSION: Final = frozenset(
    {
        "approval.register_provider",
        "self_delegation_depth",
        "session.journal",
        "session.resume",
        "session.spawn",
        "session.steer",
    }
)
"""The names of capabilities that no child inherits."""
