"""What a peer is measured with: the same turns as ours, against the same floor, in the peer's own environment.

Standard library only, as everything that a peer's interpreter imports from here.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  # the peers run on asyncio alone
import gc
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import ClassVar

from benchmarks import floor
from benchmarks.pairing import Effort, Paired, paired
from benchmarks.rows import Row, figure

__all__ = ["Peer", "main"]


class Peer(ABC):
    """A peer's session, with a model whose answers are made beforehand."""

    name: ClassVar[str]

    @abstractmethod
    async def open(self) -> None:
        """Make what a turn needs once."""

    @abstractmethod
    async def prepare(self, steps: Sequence[int]) -> None:
        """Make one turn's answers and empty the history."""

    @abstractmethod
    async def turn(self) -> str:
        """Run the turn that was prepared and return its answer."""

    @abstractmethod
    async def close(self) -> None:
        """Release what `open` made."""

    def emitter(self, handlers: int) -> Callable[[], Awaitable[object]] | None:
        """Return what emits one event to that many handlers; `None` where a peer has no events."""
        return None


def main(make: type[Peer]) -> None:
    """Measure a peer and print its rows as JSON; the first argument says for how many seconds each figure."""
    effort = Effort(seconds=float(sys.argv[1]))
    name = make.name
    bare = floor.turn_sample([], turns=1000)
    rows = [
        _row(f"{name}: turn without tools", paired(_turns(make, [], turns=20), bare, effort)),
        *(_iteration(make, f"{name}: iteration, n={count}", count, effort) for count in (10, 100, 1000)),
        _row(
            f"{name}: 100 parallel no-op calls",
            paired(_turns(make, [100]), floor.turn_sample([100], turns=5), effort, per=100),
        ),
        *_emits(make, name, effort),
    ]
    print(json.dumps(rows))


def _iteration(make: type[Peer], what: str, count: int, effort: Effort) -> Row:
    effort = Effort(effort.seconds, pairs=2) if count == 1000 else effort  # a peer may take ten seconds for one
    return _row(what, paired(_turns(make, [1] * count), floor.turn_sample([1] * count, turns=5), effort, per=count))


def _emits(make: type[Peer], name: str, effort: Effort) -> list[Row]:
    if make().emitter(0) is None:
        return []
    return [
        _row(f"{name}: emit to {count} handlers", paired(_events(make, count), floor.emit_sample(count, 500), effort))
        for count in (0, 1, 10)
    ]


def _row(what: str, result: Paired) -> Row:
    return figure(what, result.ratio, str(result))


def _turns(make: type[Peer], steps: Sequence[int], turns: int = 1) -> Callable[[], float]:
    """Return what measures turns of a warm session, each with an empty history before it: seconds a turn."""

    async def sample() -> float:
        peer = make()
        await peer.open()
        await peer.prepare([1, 2])
        await peer.turn()
        gc.collect()
        seconds = 0.0
        for _ in range(turns):
            await peer.prepare(steps)
            started = perf_counter()
            answer = await peer.turn()
            seconds += perf_counter() - started
            if "done" not in answer:
                raise RuntimeError(f"{peer.name} answered {answer!r} instead of 'done'")
        await peer.close()
        return seconds / turns

    return lambda: asyncio.run(sample())


def _events(make: type[Peer], handlers: int, times: int = 50) -> Callable[[], float]:
    async def sample() -> float:
        emit = make().emitter(handlers)
        if emit is None:
            raise TypeError("the peer has no events")
        gc.collect()
        started = perf_counter()
        for _ in range(times):
            await emit()
        return (perf_counter() - started) / times

    return lambda: asyncio.run(sample())
