"""The keys that a mount plan may have: the one table behind the reader, the JSON Schema and their messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

__all__ = ["ENTRY_KEYS", "PLAN_KEYS", "SESSION_KEYS", "SINGLE_KEYS", "Keys", "Shape"]

Shape: TypeAlias = Literal[
    "name", "anything", "mapping", "count", "flag", "limits", "session", "system"
]
"""What stands under a key: `count` is a whole number from 0, `name` a text that is not empty."""

Keys: TypeAlias = Mapping[str, tuple[Shape, str]]
"""Keys with their shapes and what they mean; a plan may leave each out or write null, but for what it must have."""

SINGLE_KEYS: Final[Keys] = {
    "module": ("name", "the module's id"),
    "source": (
        "anything",
        "where the module comes from, for the application's module source resolver",
    ),
    "config": (
        "mapping",
        "the module's configuration; the module says what it may hold",
    ),
}
"""The keys of the orchestrator and the context, where the plan gives one as a mapping."""

ENTRY_KEYS: Final[Keys] = {
    **SINGLE_KEYS,
    "instance_id": (
        "name",
        "the name under which the instance is mounted; needed to list one module twice",
    ),
}
"""The keys of an entry in a list of modules."""

SESSION_KEYS: Final[Keys] = {
    "limits": ("limits", "how much a turn may do and how long each step may take"),
    "injection_size_limit": (
        "count",
        "characters of one text that a handler injects; null for no limit",
    ),
    "injection_budget_per_turn": (
        "count",
        "tokens of all injections of a turn; null for no limit",
    ),
    "metadata": ("mapping", "carried by session:start and session:resume"),
    "ask_before_changes": (
        "flag",
        "a tool call that does more than read needs an approval: a module's or a person's",
    ),
    "raw": (
        "flag",
        "put the plan into session:resume and session:fork too, without what stands under keys named as secrets",
    ),
}
"""The keys of the session section, beside those of the modules that a session has one of."""

PLAN_KEYS: Final[Keys] = {
    "session": ("session", "the loop, the memory, and the session's settings"),
    "system": (
        "system",
        "the agent's instruction, with which a new conversation begins",
    ),
    "agents": ("mapping", "agents by name; carried for those who open child sessions"),
}
"""The keys of the plan, beside the sections of the module types."""
