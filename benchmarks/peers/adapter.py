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
from time import perf_counter, process_time
from typing import ClassVar, Final

from benchmarks import floor
from benchmarks.memory import resident
from benchmarks.pairing import Effort, Paired, paired
from benchmarks.rows import Row, figure

__all__ = ["MESSAGES", "PIECES", "Peer", "main"]

MESSAGES: Final = 10_000
PIECES: Final = 2_000


class Peer(ABC):
    """A peer's session, with a model whose answers are made beforehand, each after `think` seconds."""

    name: ClassVar[str]
    think: float = 0.0

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

    async def remember(self, messages: int) -> bool:
        """Put that many messages before the turn that was prepared; `False` where a peer keeps none."""
        return False

    async def stream(self, pieces: int) -> str | None:
        """Run a turn whose answer comes in pieces of `floor.PIECE` and read them; `None` where a peer streams none."""
        return None

    def emitter(self, handlers: int) -> Callable[[], Awaitable[object]] | None:
        """Return what emits one event to that many handlers; `None` where a peer has no events."""
        return None


def main(make: type[Peer]) -> None:
    """Measure a peer and print its rows as JSON; the first argument says for how many seconds each figure."""
    effort = Effort(seconds=float(sys.argv[1]))
    name = make.name
    bare = floor.turn_sample([], turns=1000)
    rows = [
        _row(
            f"{name}: turn without tools",
            paired(_turns(make, [], turns=20), bare, effort),
        ),
        *(
            _iteration(make, f"{name}: iteration, n={count}", count, effort)
            for count in (10, 100, 1000)
        ),
        _row(
            f"{name}: 100 parallel no-op calls",
            paired(
                _turns(make, [100]), floor.turn_sample([100], turns=5), effort, per=100
            ),
        ),
        *_history(make, effort),
        *_streams(make, effort),
        *_sessions(make),
        *_emits(make, name, effort),
    ]
    print(json.dumps(rows))


def _iteration(make: type[Peer], what: str, count: int, effort: Effort) -> Row:
    if count == 1000:  # a peer may take a minute for one sample
        effort = Effort(0.0, pairs=1)
    return _row(
        what,
        paired(
            _turns(make, [1] * count),
            floor.turn_sample([1] * count, turns=5),
            effort,
            per=count,
        ),
    )


def _history(make: type[Peer], effort: Effort) -> list[Row]:
    """What each of ten thousand earlier messages adds to a turn of a session that had them before."""

    async def sample(messages: int) -> float:
        peer = make()
        await peer.open()
        await peer.prepare([])
        await peer.turn()
        await peer.prepare([])
        is_kept = await peer.remember(messages)
        seconds = await _timed(peer)
        await peer.close()
        return seconds if is_kept else 0.0

    if not asyncio.run(sample(MESSAGES)):
        return []
    few = Effort(effort.seconds, pairs=2)
    result = paired(
        lambda: asyncio.run(sample(MESSAGES)), lambda: asyncio.run(sample(0)), few
    )
    added = max(0.0, (result.subject - result.floor) / MESSAGES)
    detail = f"a turn takes {result.subject:,.3g} µs after {MESSAGES:,} messages, {result.floor:,.3g} µs after none"
    return [
        figure(
            f"{make.name}: a message of history, each turn", added, detail, unit=" µs"
        )
    ]


def _streams(make: type[Peer], effort: Effort) -> list[Row]:
    """A piece of an answer that is read as it comes."""

    async def sample() -> float:
        peer = make()
        await peer.open()
        await peer.prepare([])
        if await peer.stream(1) is None:
            return 0.0
        await peer.prepare([])
        gc.collect()
        started = process_time()
        text = await peer.stream(PIECES)
        seconds = process_time() - started
        if text != floor.PIECE * PIECES:
            raise RuntimeError(f"{peer.name} lost pieces of an answer")
        await peer.close()
        return seconds

    if not asyncio.run(sample()):
        return []
    few = Effort(effort.seconds, pairs=2)
    result = paired(
        lambda: asyncio.run(sample()), floor.stream_sample(PIECES), few, per=PIECES
    )
    return [_row(f"{make.name}: a streamed delta, the turn read", result)]


def _sessions(make: type[Peer]) -> list[Row]:
    """A thousand sessions at once, each with a turn of five calls; as our own case has it."""
    wall, kilobytes = asyncio.run(_all_at_once(make))
    ideal = (floor.CALLS + 1) * floor.THINK
    what = f"{make.name}: {floor.SESSIONS:,} sessions × {floor.CALLS} calls"
    return [
        figure(
            f"{what}, wall over ideal",
            wall / ideal,
            f"{wall:.3g} s, ideal {ideal:.3g} s",
        ),
        figure(
            f"{what}, memory of each", kilobytes, "resident, after its turn", unit=" KB"
        ),
    ]


async def _all_at_once(make: type[Peer]) -> tuple[float, float]:
    warm = make()
    await warm.open()
    await warm.prepare([1] * floor.CALLS)
    await warm.turn()
    gc.collect()
    before = resident()
    peers = [make() for _ in range(floor.SESSIONS)]
    for peer in peers:
        await peer.open()
        await peer.prepare([1] * floor.CALLS)
        peer.think = floor.THINK
    gc.collect()
    started = perf_counter()
    answers = await asyncio.gather(*[peer.turn() for peer in peers])
    wall = perf_counter() - started
    if any("done" not in answer for answer in answers):
        raise RuntimeError(
            f"a session of {warm.name} gave another answer than its model"
        )
    gc.collect()
    kilobytes = (resident() - before) / 1024 / floor.SESSIONS
    for peer in (warm, *peers):
        await peer.close()
    return wall, kilobytes


def _emits(make: type[Peer], name: str, effort: Effort) -> list[Row]:
    if make().emitter(0) is None:
        return []
    return [
        _row(
            f"{name}: emit to {count} handlers",
            paired(_events(make, count), floor.emit_sample(count, 500), effort),
        )
        for count in (0, 1, 10)
    ]


def _row(what: str, result: Paired) -> Row:
    return figure(what, result.ratio, str(result))


def _turns(
    make: type[Peer], steps: Sequence[int], turns: int = 1
) -> Callable[[], float]:
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
            seconds += await _timed(peer)
        await peer.close()
        return seconds / turns

    return lambda: asyncio.run(sample())


async def _timed(peer: Peer) -> float:
    started = process_time()
    answer = await peer.turn()
    seconds = process_time() - started
    if "done" not in answer:
        raise RuntimeError(f"{peer.name} answered {answer!r} instead of 'done'")
    return seconds


def _events(make: type[Peer], handlers: int, times: int = 50) -> Callable[[], float]:
    async def sample() -> float:
        emit = make().emitter(handlers)
        if emit is None:
            raise TypeError("the peer has no events")
        gc.collect()
        started = process_time()
        for _ in range(times):
            await emit()
        return (process_time() - started) / times

    return lambda: asyncio.run(sample())
