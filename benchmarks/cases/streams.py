"""Answers that come in pieces, and histories that no longer fit."""

from __future__ import annotations

from typing import Final

from amplifier_sdk import MessageDict
from benchmarks import floor
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, bar, figure
from benchmarks.subject import stream_sample, turn_sample

__all__ = ["compaction", "deltas"]

PIECES: Final = 2_000
MESSAGES: Final = 10_000
SMALL: Final[dict[str, object]] = {"max_tokens": 4_000}
"""A context into which a tenth of the messages fits."""


def deltas(backend: str, effort: Effort) -> list[Row]:
    """A piece of an answer: from the provider to whoever awaits the answer, and to a reader of the turn."""
    bare = floor.stream_sample(PIECES)
    awaited = paired(
        stream_sample(PIECES, backend=backend, read=False), bare, effort, per=PIECES
    )
    read = paired(
        stream_sample(PIECES, backend=backend, read=True), bare, effort, per=PIECES
    )
    return [
        figure(
            f"a streamed delta, the answer awaited, {backend}",
            awaited.ratio,
            str(awaited),
        ),
        figure(f"a streamed delta, the turn read, {backend}", read.ratio, str(read)),
    ]


def compaction(backend: str, effort: Effort) -> list[Row]:
    """Turns after a history that is ten times too long: the one that shortens its view, and those that follow."""
    said: list[MessageDict] = [
        {"role": "user", "content": "m"},
        {"role": "assistant", "content": "m"},
    ]
    history = said * (MESSAGES // 2)
    few = turn_sample([], backend=backend, turns=20)
    later = paired(
        turn_sample([], backend=backend, turns=20, history=history, context=SMALL),
        few,
        effort,
    )
    first = paired(
        turn_sample([], backend=backend, history=history, context=SMALL, settled=False),
        few,
        Effort(effort.seconds / 2, 3),
    )
    added = max(0.0, (later.subject - later.floor) / MESSAGES)
    detail = f"a turn takes {later.subject:,.3g} µs after {MESSAGES:,} messages, {later.floor:,.3g} µs after none"
    return [
        bar(
            f"a message of a history that is compacted, each turn, {backend}",
            added,
            0.1,
            detail,
            unit=" µs",
        ),
        figure(
            f"the first turn after {MESSAGES:,} messages, which compacts, {backend}",
            first.subject / 1e3,
            unit=" ms",
        ),
    ]
