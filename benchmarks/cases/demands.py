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
from time import perf_counter, process_time
from typing import Final

import anyio

from amplifier.kernel.clock import timestamp
from amplifier_sdk import ChatRequest, Emission, JSONValue, ToolResult
from amplifier_sdk.arguments import ArgumentSchema
from benchmarks import floor
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, figure
from benchmarks.subject import noop

__all__ = ["demands"]

SCOPES: Final = frozenset({"scopes"})
STEPS: Final = SCOPES | {"steps"}
EVENTS: Final = STEPS | {"events"}
DUTIES: Final = EVENTS | {"duties"}

MOST: Final = 1_000_000
WINDOW: Final[Mapping[str, int]] = {
    "context_window": 1_000_000_000,
    "max_output_tokens": 4_096,
}

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
        _row(
            "the same, limits, bounds, what is shown and kept",
            DUTIES,
            *turn,
            backend,
            effort,
        ),
        _row("an iteration's two deadlines alone", SCOPES, *iteration, backend, effort),
        _row(
            "the same, ids, the check, records, messages",
            STEPS,
            *iteration,
            backend,
            effort,
        ),
        _row(
            "the same, four events with one handler",
            EVENTS,
            *iteration,
            backend,
            effort,
        ),
        _row(
            "the same, limits, bounds, what is shown and kept",
            DUTIES,
            *iteration,
            backend,
            effort,
        ),
    ]


def _row(
    what: str,
    demanded: frozenset[str],
    steps: Sequence[int],
    turns: int,
    per: int,
    backend: str,
    effort: Effort,
) -> Row:
    result = paired(
        _sample(demanded, steps, turns, backend),
        floor.turn_sample(steps, turns),
        effort,
        per=per,
    )
    return figure(f"{what}, {backend}", result.ratio, str(result))


def _sample(
    demanded: frozenset[str], steps: Sequence[int], turns: int, backend: str
) -> Callable[[], float]:
    async def sample() -> float:
        prepared = [
            _Turn(floor.Script(floor.replies(steps)), demanded) for _ in range(turns)
        ]
        gc.collect()
        started = process_time()
        for turn in prepared:
            await turn.run()
        return (process_time() - started) / turns

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
        self.has_duties = "duties" in demanded
        self.is_cancelled = False
        self.end = 0.0
        self.iterations = self.calls = self.tokens = 0
        self.running: dict[str, str] = {}
        self.finished: dict[str, ToolResult] = {}
        self.waiting: dict[int, tuple[object, float]] = {}

    async def run(self) -> object:
        """Run the turn and return its answer."""
        self.end = anyio.current_time() + 3600
        with anyio.move_on_after(3600) if self.has_scopes else nullcontext():
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
        if self.has_duties:
            self.begin_call()
            self.show_history()
        if self.has_events:
            self.begin_step()
            await self.event({"provider": "prepared", "model": None})
        if self.has_duties:
            self.show_history()  # a handler may have added to it
        if self.has_steps:
            ChatRequest(messages=())
        if self.has_scopes:
            with anyio.move_on_after(600):
                reply = await self.script.answer()
        else:
            reply = await self.script.answer()
        if self.has_events:
            await self.event(
                {
                    "provider": "prepared",
                    "model": None,
                    "response": reply,
                    "usage": None,
                }
            )
        self.history.append(self.kept(reply) if self.has_duties else reply)
        if token is not None:
            _step.reset(token)
        return reply

    def begin_call(self) -> None:
        """Refuse what a limit does not allow."""
        self.iterations += 1
        if (
            self.is_cancelled
            or self.iterations > MOST
            or self.calls > MOST
            or anyio.current_time() > self.end
        ):
            raise RuntimeError("a limit is reached")

    def show_history(self) -> tuple[object, range]:
        """Return what a model that has this window is shown."""
        if self.tokens > WINDOW["context_window"] - WINDOW["max_output_tokens"]:
            raise RuntimeError("the history is too large")
        return self.history, range(len(self.history))

    def kept(self, reply: dict[str, object]) -> dict[str, object]:
        """Return an answer as the history has it: as data, its calls by ids of their own, its size bounded."""
        calls: list[floor.Call] = reply["calls"]  # type: ignore[assignment]  # `replies` puts a list there
        if len({call_id for call_id, _, _ in calls}) != len(calls):
            raise RuntimeError("two calls have one id")
        blocks: list[object] = [
            {"type": "tool_call", "id": call_id, "name": name, "input": given}
            for call_id, name, given in calls
        ] or [{"type": "text", "text": reply["text"]}]
        self.tokens += len(str(blocks))
        message: dict[str, object] = {"role": "assistant", "content": blocks}
        if calls:
            message["tool_calls"] = [
                {"id": call_id, "tool": name, "arguments": given}
                for call_id, name, given in calls
            ]
        return message

    async def call(self, call: floor.Call) -> None:  # noqa: C901  # flat: that is what it measures
        """Run one tool call."""
        call_id, name, arguments = call
        token = _step.set(self) if self.has_steps else None
        shown = arguments
        if self.has_steps:
            values: dict[str, JSONValue] = {"x": arguments["x"], "y": arguments["y"]}
            _SCHEMA.problem(values)
        if self.has_duties:
            self.finished.pop(call_id, None)
            if self.is_cancelled or self.calls >= MOST:
                raise RuntimeError("a limit is reached")
            self.calls += 1
            shown, arguments = arguments.copy(), arguments.copy()
        if self.has_events:
            self.begin_step()
            await self.event(
                {"tool_name": name, "tool_input": shown, "tool_call_id": call_id}
            )
        if self.has_duties:
            if shown != arguments:
                raise RuntimeError("a handler changed the arguments in place")
            self.running[call_id] = name
        if self.has_scopes:
            with anyio.move_on_after(120):
                text = await floor.noop(**arguments)
        else:
            text = await floor.noop(**arguments)
        result = ToolResult(output=text) if self.has_steps else None
        if self.has_duties and result is not None:
            del self.running[call_id]
            self.finished[call_id] = result
            self.tokens += len(text)
        if self.has_events:
            await self.event(
                {
                    "tool_name": name,
                    "tool_input": arguments,
                    "result": result,
                    "duration": 0.0,
                }
            )
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

    async def event(self, data: dict[str, object]) -> None:
        """Tell one handler of an event: ids, the time, a copy of its own; note who waits, and what was decided."""
        shown = {**self.fields, **data, "timestamp": timestamp()}
        if not self.has_duties:
            await floor.observe(shown)
            return
        self.waiting[id(shown)] = (shown, perf_counter())
        try:
            await floor.observe(shown)
        finally:
            del self.waiting[id(shown)]
        Emission(data, [])
