"""What a session spent: provider calls, tool calls, tokens, children."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, Self

import attrs

from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Spending"]

_COUNTS: Final = ("provider_calls", "tool_calls", "tool_failures", "children")
_TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")
_PARTS: Final = ("reasoning_tokens", "cache_read_tokens", "cache_write_tokens")
"""What a provider may leave out of its usage."""


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
            if self.usage is None:
                self.usage = usage
            else:
                self.usage = self.usage + usage

    def add(self, other: Spending) -> None:
        """Add another account to this one."""
        self.provider_calls += other.provider_calls
        self.tool_calls += other.tool_calls
        self.tool_failures += other.tool_failures
        self.children += other.children
        if other.usage is not None:
            if self.usage is None:
                self.usage = other.usage
            else:
                self.usage = self.usage + other.usage

    def to_dict(self) -> dict[str, JSONValue]:
        """Write the account as plain JSON data; a cost is a decimal string."""
        usage = self.usage or _NO_USAGE
        data: dict[str, JSONValue] = {name: getattr(self, name) for name in _COUNTS}
        data |= {name: getattr(usage, name) for name in _TOKENS}
        if usage.cost_usd is None:
            data["cost_usd"] = None
        else:
            data["cost_usd"] = str(usage.cost_usd)
        return data | {
            name: tokens
            for name in _PARTS
            if (tokens := getattr(usage, name)) is not None
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, JSONValue]) -> Self:
        """Read what `to_dict` wrote, for example of a session that is resumed; what is missing counts as nothing.

        Raises:
            ConfigError: a count is no whole number from 0, or the cost is no amount; all of them are named.
        """
        problems = [
            Problem(name, f"a whole number from 0; got {data[name]!r:.40}")
            for name in (*_COUNTS, *_TOKENS, *_PARTS)
            if data.get(name) is not None and not _is_count(data[name])
        ]
        cost = data.get("cost_usd")
        dollars = None
        if cost is not None:
            dollars = _amount(cost)
        if cost is not None and dollars is None:
            problems.append(
                Problem(
                    "cost_usd",
                    f"an amount of US dollars as decimal text; got {cost!r:.40}",
                )
            )
        if problems:
            raise ConfigError(problems, subject="what a session has spent")
        known = {name: data.get(name) for name in _PARTS}
        used = Usage(
            **{name: data.get(name) or 0 for name in _TOKENS},  # type: ignore[arg-type]  # checked above
            **known,  # type: ignore[arg-type]  # checked above
            cost_usd=dollars,
        )
        counts = {name: data.get(name) or 0 for name in _COUNTS}
        return cls(**counts, usage=None if used == _NO_USAGE else used)  # type: ignore[arg-type]  # likewise


_NO_USAGE: Final = Usage(input_tokens=0, output_tokens=0, total_tokens=0)


def _is_count(value: JSONValue) -> bool:
    # JSON's `true` is an int to Python
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _amount(value: JSONValue) -> Decimal | None:
    """Read an amount of money; `None` where it is none."""
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return None
    try:
        # by its text: a float's binary value would add digits that nobody wrote
        dollars = Decimal(str(value))
    except InvalidOperation:
        return None
    if dollars.is_finite() and dollars >= 0:
        return dollars
    return None
