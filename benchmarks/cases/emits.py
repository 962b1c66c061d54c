"""One event to n handlers, emitted inside a turn so that ids and times are filled in."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from typing import Final

import anyio

from amplifier import AmplifierSession, ModuleLoader
from amplifier_module_context_simple import SimpleContext
from amplifier_sdk import Loop, Turn, orchestrator
from amplifier_sdk.events import TOOL_PRE, ToolPre
from benchmarks import floor
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, bar, figure
from benchmarks.subject import PreparedModel

__all__ = ["emits"]

BARS: Final = {0: 3.0, 1: 6.0}
TIMES: Final = {0: 2000, 1: 500, 10: 100, 100: 20}
PLAN: Final[dict[str, object]] = {
    "session": {"orchestrator": "loop-emitting", "context": "context-simple"},
    "providers": ["provider-prepared"],
}


@orchestrator
class EmittingLoop(Loop):
    """Emits one event many times and answers with the seconds each took."""

    async def run(self, turn: Turn) -> str:
        """Emit as often as the prompt says."""
        times = int(turn.prompt)
        payload = ToolPre(tool_name="noop", tool_input={"x": 1, "y": "abc"})
        gc.collect()
        started = process_time()
        for _ in range(times):
            await turn.hooks.emit(TOOL_PRE, payload)
        return str((process_time() - started) / times)


async def _observe(event: str, data: object) -> None:
    pass


def _sample(handlers: int, times: int, backend: str) -> Callable[[], float]:
    async def sample() -> float:
        modules: dict[str, object] = {
            "loop-emitting": EmittingLoop,
            "context-simple": SimpleContext,
            "provider-prepared": PreparedModel,
        }
        session = AmplifierSession(PLAN, ModuleLoader(modules=modules))
        await session.initialize()
        for _ in range(handlers):
            session.coordinator.hooks.register(TOOL_PRE, _observe, decides=False)
        seconds = float(await session.execute(str(times)))
        await session.cleanup()
        return seconds

    return lambda: anyio.run(sample, backend=backend)


def emits(backend: str, effort: Effort) -> list[Row]:
    """An event with 0, 1, 10 and 100 handlers, against a loop of bare awaits over as many."""
    rows = []
    for handlers, times in TIMES.items():
        result = paired(
            _sample(handlers, times, backend),
            floor.emit_sample(handlers, times),
            effort,
        )
        what = f"emit to {handlers} handlers, {backend}"
        limit = BARS.get(handlers)
        rows.append(
            figure(what, result.ratio, str(result))
            if limit is None
            else bar(what, result.ratio, limit, str(result))
        )
    return rows
