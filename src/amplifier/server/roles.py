"""What the holder of a token may do: a role has all that those before it have."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = ["ANSWERING", "ROLES", "Role", "may"]

Role: TypeAlias = Literal["reader", "operator", "owner"]

ROLES: Final[tuple[Role, ...]] = ("reader", "operator", "owner")
"""Who reads; who also begins turns and answers questions; who also deletes, and reads the audit log and the metrics."""

ANSWERING: Final[tuple[Role, ...]] = ("operator", "owner")
"""Who may answer what a turn asks; a question says so itself."""


def may(role: Role, needed: Role) -> bool:
    """Tell whether a role is enough."""
    return ROLES.index(role) >= ROLES.index(needed)
