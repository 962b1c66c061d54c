"""Answers that stream at the pace of real models, many at once: what a delta costs, and how late it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from time import perf_counter, process_time
from typing import ClassVar, Final

import anyio
from anyio.abc import TaskGroup

from amplifier import AmplifierSession
from amplifier_sdk import (
    BaseProvider,
    ChatRequest,
    ChatResponse,
    TextBlock,
    TextDelta,
    provider,
)
from amplifier_sdk.streaming import StreamEvent
from benchmarks.floor import PROMPT
from benchmarks.pairing import Effort
from benchmarks.rows import Row, bar, figure
from benchmarks.subject import PLAN, new_loader

__all__ = ["PacedModel", "paced"]

STREAMS: Final = 1_000
PIECES: Final = 40
GAP: Final = 0.05
"""Seconds between two pieces of one stream."""

CPU: Final = {"asyncio": 18.0, "trio": 38.0}
DELAY: Final = {"asyncio": 0.2, "trio": 2.0}
"""The most that a delta may cost in microseconds, and be late in milliseconds."""

TICK: Final = 0.01
"""Seconds that the watcher of the event loop sleeps."""


@provider
class PacedModel(BaseProvider):
    """A model whose pieces come one by one; each says when it left."""

    name = "paced"
    pieces: ClassVar[int] = PIECES
    gap: ClassVar[float] = GAP

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[TextDelta | ChatResponse, None]:
        """Yield the pieces, then the answer."""
        for _ in range(self.pieces):
            await anyio.sleep(self.gap)
            yield TextDelta(text=str(perf_counter()))
        yield ChatResponse(content=[TextBlock(text="done")], finish_reason="stop")


class _Watch:
    """How late the deltas came, and how long the event loop let others wait, in seconds."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.lags: list[float] = []

    def see(self, event: StreamEvent) -> None:
        if isinstance(event, TextDelta):
            self.delays.append(perf_counter() - float(event.text))

    async def tick(self) -> None:
        while True:
            started = perf_counter()
            await anyio.sleep(TICK)
            self.lags.append(perf_counter() - started - TICK)


def paced(backend: str, effort: Effort) -> list[Row]:
    """A thousand streams of 20 pieces a second each; the effort has no say in it."""
    return [
        *anyio.run(_measured, backend, "stream", backend=backend),
        *anyio.run(_measured, backend, "sink", backend=backend),
    ]


async def _measured(backend: str, way: str) -> list[Row]:
    loader = new_loader(PacedModel)
    sessions = [
        AmplifierSession({**PLAN, "providers": ["provider-paced"]}, loader)
        for _ in range(STREAMS)
    ]
    for session in sessions:
        await session.initialize()
    watch = _Watch()
    used, started = process_time(), perf_counter()
    async with anyio.create_task_group() as watching:
        watching.start_soon(watch.tick)
        async with anyio.create_task_group() as readers:
            _start(readers, sessions, watch, way)
        watching.cancel_scope.cancel()
    used, wall = process_time() - used, perf_counter() - started
    if len(watch.delays) != STREAMS * PIECES:
        raise RuntimeError(f"{len(watch.delays)} of {STREAMS * PIECES} pieces came")
    what = f"{STREAMS:,} paced streams by {way}"
    rate = f"{len(watch.delays) / wall:,.0f} of {STREAMS / GAP:,.0f} deltas a second"
    return [
        bar(
            f"{what}, CPU of a delta, {backend}",
            used / len(watch.delays) * 1e6,
            CPU[backend],
            rate,
            unit=" µs",
        ),
        bar(
            f"{what}, delay p99, {backend}",
            _p99(watch.delays) * 1e3,
            DELAY[backend],
            unit=" ms",
        ),
        figure(
            f"{what}, lag of the loop p99, {backend}",
            _p99(watch.lags) * 1e3,
            unit=" ms",
        ),
    ]


def _start(
    readers: TaskGroup, sessions: Sequence[AmplifierSession], watch: _Watch, way: str
) -> None:
    async def read(session: AmplifierSession) -> None:
        async with session.stream(PROMPT) as events:
            async for event in events:
                watch.see(event)

    async def hear(session: AmplifierSession) -> None:
        await session.execute(PROMPT, sink=watch.see)

    for session in sessions:
        readers.start_soon(read if way == "stream" else hear, session)


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)]
