"""What a session spent: provider calls, tool calls, tokens, children."""

from __future__ import annotations

import attrs

from amplifier_sdk.chat import Usage
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Spending"]


@attrs.define(eq=False)
class Spending:
    """A running account; the session keeps one for itself and one for each turn.

    What child sessions spent is in it; `children` counts their turns.
    """

    provider_calls: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    usage: Usage | None = None
    children: int = 0

    def add_usage(self, usage: Usage | None) -> None:
        """Count a provider call and what it reported."""
        self.provider_calls += 1
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def add(self, other: Spending) -> None:
        """Add another account to this one."""
        self.provider_calls += other.provider_calls
        self.tool_calls += other.tool_calls
        self.tool_failures += other.tool_failures
        self.children += other.children
        if other.usage is not None:
            self.usage = other.usage if self.usage is None else self.usage + other.usage

    def to_dict(self) -> dict[str, JSONValue]:
        """Write the account as plain JSON data; a cost is a decimal string."""
        usage = self.usage
        return {
            "provider_calls": self.provider_calls,
            "tool_calls": self.tool_calls,
            "tool_failures": self.tool_failures,
            "children": self.children,
            "input_tokens": usage.input_tokens if usage else 0,
            "output_tokens": usage.output_tokens if usage else 0,
            "total_tokens": usage.total_tokens if usage else 0,
            "cost_usd": str(usage.cost_usd) if usage and usage.cost_usd is not None else None,
        }
