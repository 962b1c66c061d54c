"""The tokens that a server counted."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from amplifier_kit.vendors import read_tokens
from amplifier_sdk.chat import Usage
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["read_usage"]


def read_usage(chunk: Mapping[str, JSONValue]) -> Usage | None:
    """Read a chunk's usage; `None` where it has none. The cost is there when the server says it, in US dollars."""
    usage = chunk.get("usage")
    read, written = (
        read_tokens(usage, "prompt_tokens"),
        read_tokens(usage, "completion_tokens"),
    )
    # Some servers send an empty usage with every chunk.
    if not isinstance(usage, Mapping) or read is None:
        return None
    details, further = (
        usage.get("prompt_tokens_details"),
        usage.get("completion_tokens_details"),
    )
    cached = read_tokens(details, "cached_tokens")
    return Usage(
        input_tokens=read,
        output_tokens=written or 0,
        total_tokens=read + (written or 0),
        reasoning_tokens=read_tokens(further, "reasoning_tokens"),
        cache_read_tokens=read_tokens(usage, "prompt_cache_hit_tokens")
        if cached is None
        else cached,
        cache_write_tokens=read_tokens(details, "cache_write_tokens"),
        cost_usd=_cost(usage.get("cost")),
    )


def _cost(value: JSONValue) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # By its text: a float has digits that nobody counted.
    cost = Decimal(str(value))
    # another one would give back what was spent
    return cost if cost.is_finite() and cost >= 0 else None
