"""Capabilities that belong to one session alone, and those by which applications and modules share the screen.

What an application registers as a capability its session's children have as well, except for these: each session has
its own, which means itself. What a module registers is the session's own in any case, since a child mounts its
modules anew.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BACKGROUND", "PER_SESSION", "SHARED", "SHOWN", "TYPED_CALLS"]

BACKGROUND: Final = "session.background"
"""The capability with an `amplifier_sdk.delegation.SessionBackground`, of an application that holds the session open
between its turns."""

SHOWN: Final = "ui.shown"
"""The capability with what the application shows of the session's own turns: a frozen set of `answers`,
`thinking`, `tools`, `children` and `messages`.

A module that shows turns leaves that to the application, so that everything is shown once. It is not inherited: what
is shown of children is said by their parent's.
"""

TYPED_CALLS: Final = "session.typed_calls"
"""The capability of a session whose tool calls a person typed: the command that takes them, such as `tool invoke`.

What is asked of a model so that it does not act blindly, such as to read a file before it is changed, is not asked of
a person. Approval, permissions and checks of arguments are the same.
"""

PER_SESSION: Final = frozenset(
    {
        "approval.register_provider",
        "self_delegation_depth",
        BACKGROUND,
        "session.journal",
        "session.resume",
        "session.spawn",
        "session.steer",
        SHOWN,
        TYPED_CALLS,
    }
)
"""The names of capabilities that no child inherits."""

SHARED: Final = frozenset({"approval.permissions"})
"""The names of capabilities that the sessions below have as well although a module registers them: one of a family."""
