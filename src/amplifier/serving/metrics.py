"""What a server has done and does, as Prometheus reads it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from itertools import accumulate
from time import time
from typing import Final

import attrs

from amplifier_sdk.chat import Usage

__all__ = ["METRICS_TYPE", "Histogram", "Metrics"]

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_PREFIX: Final = "amplifier_server_"


@attrs.define(eq=False)
class Histogram:
    """How long something took, in classes.

    Args:
        bounds: the longest of each class in seconds, the shortest first; what takes longer has a class of its own.
    """

    bounds: tuple[float, ...]
    total: float = 0.0
    _counts: list[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._counts = [0] * (len(self.bounds) + 1)

    def add(self, seconds: float) -> None:
        """Count one."""
        self.total += seconds
        self._counts[bisect_left(self.bounds, seconds)] += 1

    def lines(self, name: str, words: str) -> Iterator[str]:
        """Write it; each class of the format holds those before it."""
        name = f"{_PREFIX}{name}"
        yield f"# HELP {name} {words}"
        yield f"# TYPE {name} histogram"
        sums = [*accumulate(self._counts)]
        bounds = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        for bound, count in zip(bounds, sums, strict=True):
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f"{name}_sum {self.total:.6f}"
        yield f"{name}_count {sums[-1]}"


@attrs.define(eq=False)
class Metrics:
    """Counters since the server was made, and gauges of now."""

    requests: Counter[int] = attrs.field(factory=Counter)
    turns: Counter[str] = attrs.field(factory=Counter)
    sessions: int = 0
    sessions_open: int = 0
    turns_running: int = 0
    streams_open: int = 0
    request_seconds: Histogram = attrs.field(
        factory=partial(Histogram, (0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0))
    )
    turn_seconds: Histogram = attrs.field(
        factory=partial(Histogram, (0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0))
    )
    store_failures: int = 0
    started: float = attrs.field(factory=time)
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    def count_request(self, status: int, seconds: float) -> None:
        """Count a request whose answer begins."""
        self.requests[status] += 1
        self.request_seconds.add(seconds)

    def count_turn(self, state: str, seconds: float, usage: Usage | None) -> None:
        """Count a turn that has ended."""
        self.turns[state] += 1
        self.turn_seconds.add(seconds)
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
        yield from _metric(
            "store_failures_total",
            "counter",
            "Requests that the store failed.",
            self.store_failures,
        )
        yield from _metric(
            "start_time_seconds",
            "gauge",
            "When the server began, since the epoch.",
            f"{self.started:.3f}",
        )
        yield from self.request_seconds.lines(
            "request_duration_seconds", "Seconds until answers began."
        )
        yield from self.turn_seconds.lines(
            "turn_duration_seconds", "Seconds that turns took."
        )


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
