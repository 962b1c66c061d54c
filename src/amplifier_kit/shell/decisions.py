"""What becomes of a call or a command that rules are about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

__all__ = ["Decision", "strictest"]

Decision: TypeAlias = Literal["allow", "ask", "deny"]
"""It runs, a person is asked, or it does not run; the later weighs more."""

_WEIGHT: Final[dict[Decision, int]] = {"allow": 0, "ask": 1, "deny": 2}


def strictest(decisions: Iterable[Decision]) -> Decision:
    """Return the decision that takes precedence."""
    return max(decisions, key=_WEIGHT.__getitem__)
