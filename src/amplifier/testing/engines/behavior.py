"""What is true of every good engine, as a row of a table, and what the checks share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeAlias
from uuid import uuid4

import anyio

from amplifier.testing.suite_behaviors import SuiteBehavior
from amplifier.validation.behaviors import BehaviorFailed
from amplifier_sdk.engines import (
    ExecutionEngine,
    Run,
    RunState,
    WorkerOptions,
    Workflow,
)

__all__ = [
    "EngineBehavior",
    "EngineSubject",
    "same",
    "settled",
    "working",
]

_POLLING: Final = 0.02
"""Seconds between two queries of a run: no engine is asked to say when one changes."""


class EngineSubject(Protocol):
    """An engine under test, empty at the beginning of each check."""

    async def open(self) -> ExecutionEngine:
        """Open the engine; each call as another process would, and all of them see the same runs."""

    async def kill(self, engine: ExecutionEngine) -> None:
        """Let what works through this engine die as if by `kill -9`: its period is over, and it returned nothing.

        The caller cancels its `work` next; nothing of that may change what is stored.
        """


EngineBehavior: TypeAlias = SuiteBehavior[EngineSubject]
"""Something that is true of every good engine."""


@asynccontextmanager
async def working(
    engine: ExecutionEngine, workflows: Mapping[str, Workflow], **options: float
) -> AsyncIterator[Callable[[], None]]:
    """Let a worker work for a block; yield what stops it before the block's end."""
    chosen = WorkerOptions(
        name=uuid4().hex,
        period=options.get("period", 60.0),
        drain=options.get("drain", 5.0),
        max_runs=int(options.get("max_runs", 8)),
        max_tenant_runs=int(options.get("max_tenant_runs", 8)),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.work, workflows, chosen)
        try:
            yield tasks.cancel_scope.cancel
        finally:
            tasks.cancel_scope.cancel()


async def settled(engine: ExecutionEngine, run_id: str, *states: RunState) -> Run:
    """Return a run as soon as it is in one of some states; by default those that are for ever."""
    wanted = states or ("finished", "failed", "cancelled")
    while True:
        run = await engine.find(run_id)
        if run is not None and run.state in wanted:
            return run
        await anyio.sleep(_POLLING)


def same(what: str, seen: object, wanted: object) -> None:
    """Fail where something is not as it must be.

    Raises:
        BehaviorFailed: it is not.
    """
    if seen != wanted:
        raise BehaviorFailed(f"{what}: {seen!r:.300}; expected {wanted!r:.300}")
