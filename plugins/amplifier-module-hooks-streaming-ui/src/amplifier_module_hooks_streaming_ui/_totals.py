"""What a turn came to: requests, tokens, calls, seconds, cost; a child's turn counts for its parent's as well."""

from __future__ import annotations

from time import perf_counter

import attrs

from amplifier_sdk.chat import Usage

__all__ = ["TurnTotals"]


@attrs.define(eq=False)
class TurnTotals:
    """Counts one turn."""

    started: float = attrs.field(factory=perf_counter)
    requests: int = 0
    calls: int = 0
    usage: Usage | None = None

    def add(self, usage: Usage | None) -> None:
        """Count what one request used."""
        self.requests += 1
        if usage is not None:
            if self.usage is None:
                self.usage = usage
            else:
                self.usage = self.usage + usage

    def include(self, child: TurnTotals) -> None:
        """Count what a child's turn came to."""
        self.requests += child.requests
        self.calls += child.calls
        if child.usage is not None:
            if self.usage is None:
                self.usage = child.usage
            else:
                self.usage = self.usage + child.usage

    def text(self) -> str:
        """Say it in one line."""
        parts = [_counted(self.requests, "request"), _counted(self.calls, "tool call")]
        usage = self.usage
        if usage is not None:
            cached = ""
            if usage.cache_read_tokens:
                cached = f" ({usage.cache_read_tokens:,} cached)"
            parts = [
                f"tokens: {usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out",
                *parts,
            ]
            if usage.cost_usd is not None:
                parts.append(f"${usage.cost_usd:.4f}")
        return "; ".join([*parts, f"{perf_counter() - self.started:.1f} s"])


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
