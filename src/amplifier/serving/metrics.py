"""What a server has done and does, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

import attrs

from amplifier_sdk.chat import Usage

__all__ = ["METRICS_TYPE", "Metrics"]

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_PREFIX: Final = "amplifier_server_"


@attrs.define(eq=False)
class Metrics:
    """Counters since the server was made, and gauges of now."""

    requests: Counter[int] = attrs.field(factory=Counter)
    turns: Counter[str] = attrs.field(factory=Counter)
    sessions: int = 0
    sessions_open: int = 0
    turns_running: int = 0
    streams_open: int = 0
    turn_seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    def count_turn(self, state: str, seconds: float, usage: Usage | None) -> None:
        """Count a turn that has ended."""
        self.turns[state] += 1
        self.turn_seconds += seconds
        if usage is not None:
            self.input_tokens += usage.input_tokens
            self.output_tokens += usage.output_tokens
            self.cost_usd += usage.cost_usd or 0

    def to_text(self) -> str:
        """Write all of them."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _counter(
            "requests", "HTTP requests by status.", "status", self.requests
        )
        yield from _counter("turns", "Turns that ended, by how.", "state", self.turns)
        tokens = {"input": self.input_tokens, "output": self.output_tokens}
        yield from _counter("tokens", "Tokens that turns used.", "kind", tokens)
        yield from _metric(
            "cost_usd_total", "counter", "US dollars, where known.", self.cost_usd
        )
        yield from _metric(
            "sessions_total", "counter", "Sessions that were opened.", self.sessions
        )
        yield from _metric(
            "sessions_open", "gauge", "Open sessions.", self.sessions_open
        )
        yield from _metric(
            "turns_running", "gauge", "Turns that run.", self.turns_running
        )
        yield from _metric(
            "streams_open", "gauge", "Event streams that are read.", self.streams_open
        )
        name = f"{_PREFIX}turn_duration_seconds"
        yield f"# HELP {name} Seconds that turns took."
        yield f"# TYPE {name} summary"
        yield f"{name}_sum {self.turn_seconds:.6f}"
        yield f"{name}_count {self.turns.total()}"


def _metric(name: str, kind: str, words: str, value: object) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {words}"
    yield f"# TYPE {_PREFIX}{name} {kind}"
    yield f"{_PREFIX}{name} {value}"


def _counter(
    name: str, words: str, label: str, values: Mapping[str, int] | Mapping[int, int]
) -> Iterator[str]:
    """Write a counter with a sample for each value of a label; the values are the server's own words."""
    yield f"# HELP {_PREFIX}{name}_total {words}"
    yield f"# TYPE {_PREFIX}{name}_total counter"
    for value, number in sorted(values.items()):
        yield f'{_PREFIX}{name}_total{{{label}="{value}"}} {number}'
