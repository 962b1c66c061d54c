"""What the design asks of a turn, each part alone: the same loop as the floor with one demand after the other.

Everything is written flat into one function, without a registry, a session, modules or a wall to foreign
code. So a sum here is what no runtime with these promises can be faster than, and a bar below it cannot be met.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from random import getrandbits
from time import perf_counter
from typing import Final

import anyio

from amplifier.kernel.clock import timestamp
from amplifier_sdk import ChatRequest, JSONValue, ToolResult
from amplifier_sdk.arguments import ArgumentSchema
from benchmarks import floor
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, figure
from benchmarks.subject import noop

__all__ = ["demands"]

SCOPES: Final = frozenset({"scopes"})
STEPS: Final = SCOPES | {"steps"}
EVENTS: Final = STEPS | {"events"}

_step: ContextVar[object] = ContextVar("benchmark_step", default=None)
_SCHEMA: Final = ArgumentSchema(noop.input_schema, noop.name)


def demands(backend: str, effort: Effort) -> list[Row]:
    """A turn without tools and an iteration, with the demands added one after the other."""
    turn: tuple[list[int], int, int] = ([], 200, 1)
    iteration = ([1] * 100, 4, 100)
    return [
        _row("a turn's two deadlines alone", SCOPES, *turn, backend, effort),
        _row("the same, its ids and its request", STEPS, *turn, backend, effort),
        _row("the same, four events with one handler", EVENTS, *turn, backend, effort),
        _row("an iteration's two deadlines alone", SCOPES, *iteration, backend, effort),
        _row("the same, ids, the check, records, messages", STEPS, *iteration, backend, effort),
        _row("the same, four events with one handler", EVENTS, *iteration, backend, effort),
    ]


def _row(
    what: str, demanded: frozenset[str], steps: Sequence[int], turns: int, per: int, backend: str, effort: Effort
) -> Row:
    result = paired(_sample(demanded, steps, turns, backend), floor.turn_sample(steps, turns), effort, per=per)
    return figure(f"{what}, {backend}", result.ratio, str(result))


def _sample(demanded: frozenset[str], steps: Sequence[int], turns: int, backend: str) -> Callable[[], float]:
    async def sample() -> float:
        prepared = [_Turn(floor.Script(floor.replies(steps)), demanded) for _ in range(turns)]
        gc.collect()
        started = perf_counter()
        for turn in prepared:
            await turn.run()
        return (perf_counter() - started) / turns

    return lambda: anyio.run(sample, backend=backend)


class _Turn:
    """The floor's loop with some of the demands."""

    def __init__(self, script: floor.Script, demanded: frozenset[str]) -> None:
        self.script = script
        self.history: list[dict[str, object]] = []
        self.fields: dict[str, object] = {}
        self.has_scopes = "scopes" in demanded
        self.has_steps = "steps" in demanded
        self.has_events = "events" in demanded

    async def run(self) -> object:
        """Run the turn and return its answer."""
        with anyio.CancelScope(deadline=anyio.current_time() + 3600) if self.has_scopes else nullcontext():
            self.history.append({"role": "user", "text": floor.PROMPT})
            if self.has_events:
                self.begin_step()
                await self.event({"prompt": floor.PROMPT})
            while True:
                reply = await self.ask()
                calls: list[floor.Call] = reply["calls"]  # type: ignore[assignment]  # `replies` puts a list there
                if not calls:
                    break
                for call in calls:
                    await self.call(call)
            if self.has_events:
                await self.event({"prompt": floor.PROMPT, "response": reply["text"]})
            return reply["text"]

    async def ask(self) -> dict[str, object]:
        """Ask the model once."""
        token = _step.set(self) if self.has_steps else None
        if self.has_events:
            self.begin_step()
            await self.event({"provider": "prepared", "model": None})
        if self.has_steps:
            ChatRequest(messages=())
        if self.has_scopes:
            with anyio.CancelScope(deadline=anyio.current_time() + 600):
                reply = await self.script.answer()
        else:
            reply = await self.script.answer()
        if self.has_events:
            await self.event({"provider": "prepared", "model": None, "response": reply, "usage": None})
        self.history.append({"role": "assistant", "content": [dict(reply)]} if self.has_steps else reply)
        if token is not None:
            _step.reset(token)
        return reply

    async def call(self, call: floor.Call) -> None:
        """Run one tool call."""
        call_id, name, arguments = call
        token = _step.set(self) if self.has_steps else None
        if self.has_steps:
            values: dict[str, JSONValue] = {"x": arguments["x"], "y": arguments["y"]}
            _SCHEMA.problem(values)
        if self.has_events:
            self.begin_step()
            await self.event({"tool_name": name, "tool_input": arguments, "tool_call_id": call_id})
        if self.has_scopes:
            with anyio.CancelScope(deadline=anyio.current_time() + 120):
                text = await floor.noop(**arguments)
        else:
            text = await floor.noop(**arguments)
        result = ToolResult(output=text) if self.has_steps else text
        if self.has_events:
            await self.event({"tool_name": name, "tool_input": arguments, "result": result, "duration": 0.0})
        self.history.append({"role": "tool", "id": call_id, "text": text})
        if token is not None:
            _step.reset(token)

    def begin_step(self) -> None:
        """Make the ids that the events of one step carry."""
        self.fields = {
            "session_id": "s",
            "parent_id": None,
            "turn_id": "t",
            "span_id": f"{getrandbits(64):016x}",
            "parent_span_id": "p",
            "iteration": 1,
        }

    async def event(self, data: Mapping[str, object]) -> None:
        """Tell one handler of an event: ids, the time, a copy of its own."""
        await floor.observe({**self.fields, **data, "timestamp": timestamp()})
