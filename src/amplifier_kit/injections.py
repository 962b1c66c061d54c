"""How long a text may be that a handler adds to what the model reads."""

from __future__ import annotations

from amplifier_kit.open_data import as_object
from amplifier_sdk.contracts import Coordinator

__all__ = ["longest_injection"]


def longest_injection(coordinator: Coordinator, wanted: int) -> int:
    """Return how many characters an injection may have: at most `wanted`, and as many as the plan allows.

    A longer one is truncated; see `session.injection_size_limit` of the mount plan.
    """
    session = as_object(coordinator.config.get("session"))
    limit = session.get("injection_size_limit")
    if isinstance(limit, int):
        return min(wanted, limit)
    return wanted
