"""What a log comes to: how much happened, and tokens, cost and time by provider, tool and hook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TypeVar

import attrs

from amplifier_kit.logs.records import LogRecord
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "HookCounts",
    "LogStatistics",
    "ProviderCounts",
    "ToolCounts",
    "amount",
    "cost_of",
    "seconds_of",
]

C = TypeVar("C")


@attrs.define
class ProviderCounts:
    """The calls of one provider; `seconds` is the time until its answers, `cost_usd` is `None` where unknown."""

    calls: int = 0
    errors: int = 0
    retries: int = 0
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None

    def add_usage(self, usage: JSONValue) -> None:
        """Add what one answer used."""
        if isinstance(usage, Mapping):
            self.input_tokens += amount(usage.get("input_tokens"))
            self.output_tokens += amount(usage.get("output_tokens"))
            cost = cost_of(usage)
            if cost is not None:
                self.cost_usd = (self.cost_usd or Decimal(0)) + cost

    def to_dict(self) -> JSONObject:
        """Return them as JSON data; the cost as decimal text."""
        return {
            **attrs.asdict(self),
            "cost_usd": None if self.cost_usd is None else str(self.cost_usd),
        }


@attrs.define
class ToolCounts:
    """The calls of one tool: those that ran, those whose result is a failure, those that gave no result."""

    calls: int = 0
    failures: int = 0
    errors: int = 0
    seconds: float = 0.0


@attrs.define
class HookCounts:
    """What one hook decided, by action; `seconds` is the time that its decisions took."""

    decisions: Counter[str] = attrs.field(factory=Counter)
    seconds: float = 0.0


@attrs.define(eq=False)
class LogStatistics:
    """Counts records; `add` each."""

    records: int = 0
    first: str | None = None
    last: str | None = None
    sessions: set[str] = attrs.field(factory=set)
    turns: set[tuple[str, str]] = attrs.field(factory=set)
    levels: Counter[str] = attrs.field(factory=Counter)
    events: Counter[str] = attrs.field(factory=Counter)
    providers: dict[str, ProviderCounts] = attrs.field(factory=dict)
    tools: dict[str, ToolCounts] = attrs.field(factory=dict)
    hooks: dict[str, HookCounts] = attrs.field(factory=dict)

    def add(self, record: LogRecord) -> None:
        """Count a record."""
        self.records += 1
        self.first = min(self.first or record.ts, record.ts)
        self.last = max(self.last or record.ts, record.ts)
        self.sessions.add(record.session_id)
        if record.turn_id is not None:
            self.turns.add((record.session_id, record.turn_id))
        self.levels[record.level] += 1
        self.events[record.event] += 1
        match record.event.partition(":")[0]:
            case "provider":
                name = record.data.get("provider")
                self._add_provider(record, _of(self.providers, name, ProviderCounts))
            case "tool":
                name = record.data.get("tool_name")
                self._add_tool(record, _of(self.tools, name, ToolCounts))
            case "hook" if record.event == "hook:decided":
                name = record.data.get("module") or record.data.get("handler")
                hook = _of(self.hooks, name, HookCounts)
                hook.decisions[str(record.data.get("action"))] += 1
                hook.seconds += seconds_of(record.data)
            case _:
                pass

    def to_dict(self) -> JSONObject:
        """Return all of it as JSON data."""
        return {
            **attrs.asdict(self),
            "sessions": len(self.sessions),
            "turns": len(self.turns),
            "events": dict(self.events.most_common()),
            "providers": {
                name: counts.to_dict() for name, counts in self.providers.items()
            },
        }

    def _add_provider(self, record: LogRecord, counts: ProviderCounts) -> None:
        match record.event:
            case "provider:response":
                counts.calls += 1
                counts.seconds += seconds_of(record.data)
                counts.add_usage(record.data.get("usage"))
            case "provider:error":
                counts.calls += 1
                counts.errors += 1
            case "provider:retry":
                counts.retries += 1
            case _:
                pass

    def _add_tool(self, record: LogRecord, counts: ToolCounts) -> None:
        match record.event:
            case "tool:post":
                counts.calls += 1
                counts.seconds += seconds_of(record.data)
                result = as_object(record.data.get("result"))
                counts.failures += result.get("success") is False
            case "tool:error":
                counts.calls += 1
                counts.errors += 1
            case _:
                pass


def amount(value: object) -> int:
    """Return a whole number from 0; anything else counts as 0."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return 0


def seconds_of(data: Mapping[str, JSONValue]) -> float:
    """Return the duration in a record, in seconds; 0 where it has none."""
    value = data.get("duration")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e9 else 0.0  # type: ignore[arg-type, operator]  # a number


def cost_of(usage: Mapping[str, JSONValue]) -> Decimal | None:
    """Return the cost in US dollars in a usage; `None` where it has none."""
    value = usage.get("cost_usd")
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return None
    try:
        cost = Decimal(str(value))
    except InvalidOperation:
        return None
    if cost.is_finite() and 0 <= cost < 10**9:
        return cost
    return None


def _of(known: dict[str, C], name: JSONValue, make: type[C]) -> C:
    key = name if isinstance(name, str) and name else "(unnamed)"
    if key not in known:
        known[key] = make()
    return known[key]
