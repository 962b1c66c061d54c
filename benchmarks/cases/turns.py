"""Turns in one session: iterations, growth, parallel calls, long histories."""

from __future__ import annotations

from typing import Final

from amplifier_sdk import MessageDict
from benchmarks import floor
from benchmarks.pairing import Effort, Paired, paired
from benchmarks.rows import Row, bar, figure
from benchmarks.subject import first_turn_sample, turn_sample

__all__ = [
    "first",
    "growth",
    "history",
    "iteration",
    "journal",
    "parallel",
    "turn",
    "yielding",
]

ITERATION: Final = {"asyncio": 70.0, "trio": 82.0}
PARALLEL: Final = {"asyncio": 8.0, "trio": 10.0}


def _iterations(
    count: int,
    backend: str,
    effort: Effort,
    *,
    observed: bool = True,
    yields: bool = False,
    journaled: bool = False,
) -> Paired:
    turns = max(1, 100 // count)
    return paired(
        turn_sample(
            [1] * count,
            backend=backend,
            observed=observed,
            turns=turns,
            yields=yields,
            journaled=journaled,
        ),
        floor.turn_sample([1] * count, turns=max(1, 1000 // count)),
        effort,
        per=count,
    )


def iteration(backend: str, effort: Effort) -> list[Row]:
    """One model call and one tool call, in a turn of a hundred."""
    heard = _iterations(100, backend, effort)
    unheard = _iterations(100, backend, effort, observed=False)
    return [
        bar(
            f"iteration, n=100, one handler an event, {backend}",
            heard.ratio,
            ITERATION[backend],
            str(heard),
        ),
        figure(f"iteration, n=100, {backend}", unheard.ratio, str(unheard)),
    ]


def yielding(backend: str, effort: Effort) -> list[Row]:
    """The same iteration with a model that waits once for each answer, as real ones do."""
    heard = _iterations(100, backend, effort, yields=True)
    return [
        figure(
            f"iteration, n=100, a model that yields once, {backend}",
            heard.ratio,
            str(heard),
        )
    ]


def journal(backend: str, effort: Effort) -> list[Row]:
    """The same iteration with a journal in memory."""
    heard = _iterations(100, backend, effort, journaled=True)
    return [figure(f"iteration, n=100, journaled, {backend}", heard.ratio, str(heard))]


def first(backend: str, effort: Effort) -> list[Row]:
    """The first turn of a fresh session, with one call."""
    result = paired(
        first_turn_sample(backend=backend), floor.turn_sample([1], turns=100), effort
    )
    return [
        figure(
            f"first turn of a fresh session, one call, {backend}",
            result.ratio,
            str(result),
        )
    ]


def growth(backend: str, effort: Effort) -> list[Row]:
    """What an iteration costs late in a long turn, against a short one: taken turn about."""
    few = turn_sample([1] * 10, backend=backend, observed=True, turns=20)
    many = turn_sample([1] * 1000, backend=backend, observed=True)
    result = paired(lambda: many() / 1000, lambda: few() / 10, effort)
    detail = f"{result.subject:.3g} µs an iteration at n=1,000, {result.floor:.3g} µs at n=10"
    return [bar(f"iteration, n=1,000 over n=10, {backend}", result.ratio, 1.3, detail)]


def turn(backend: str, effort: Effort) -> list[Row]:
    """A turn without tools."""
    result = paired(
        turn_sample([], backend=backend, turns=100),
        floor.turn_sample([], turns=1000),
        effort,
    )
    return [figure(f"turn without tools, {backend}", result.ratio, str(result))]


def parallel(backend: str, effort: Effort) -> list[Row]:
    """A hundred calls in one answer that do nothing."""
    result = paired(
        turn_sample([100], backend=backend),
        floor.turn_sample([100], turns=5),
        effort,
        per=100,
    )
    return [
        bar(
            f"100 parallel no-op calls, {backend}",
            result.ratio,
            PARALLEL[backend],
            str(result),
        )
    ]


def history(backend: str, effort: Effort) -> list[Row]:
    """What each message of a long history adds to a turn."""
    return [
        _history_row("a message of history, each turn", backend, effort),
        _history_row(
            "the same, two texts added to the request", backend, effort, reminded=True
        ),
    ]


def _history_row(
    what: str, backend: str, effort: Effort, *, reminded: bool = False
) -> Row:
    size = 10_000
    said: list[MessageDict] = [
        {"role": "user", "content": "m"},
        {"role": "assistant", "content": "m"},
    ]
    result = paired(
        turn_sample(
            [], backend=backend, turns=20, history=said * (size // 2), reminded=reminded
        ),
        turn_sample([], backend=backend, turns=20, reminded=reminded),
        effort,
    )
    added = max(0.0, (result.subject - result.floor) / size)
    detail = f"a turn takes {result.subject:,.3g} µs after {size:,} messages, {result.floor:,.3g} µs after none"
    return bar(f"{what}, {backend}", added, 0.1, detail, unit=" µs")
