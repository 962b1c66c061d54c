"""The floor: the agent loop that every ratio is held against, on bare asyncio with nothing around it.

The history is a list of dicts, the model an awaited method that answers at once, one tool call is one
`await`, several are `asyncio.gather`. Standard library only: the peers' interpreters import it too.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  # the floor is a bare asyncio loop
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import count
from time import perf_counter, process_time
from typing import Final, Protocol, TypeAlias, TypedDict

__all__ = [
    "ARGUMENTS",
    "CALLS",
    "PIECE",
    "PROMPT",
    "SESSIONS",
    "THINK",
    "Arguments",
    "Call",
    "Script",
    "ToolFunction",
    "emit_sample",
    "new_id",
    "noop",
    "observe",
    "replies",
    "stream_sample",
    "think_time_turns",
    "turn",
    "turn_sample",
]


class Arguments(TypedDict):
    """What the tool takes."""

    x: int
    y: str


class ToolFunction(Protocol):
    """The tool, an awaited function."""

    def __call__(self, x: int, y: str = "") -> Awaitable[str]:
        """Return the number as text."""


PROMPT: Final = "go"
PIECE: Final = "word "
SESSIONS: Final = 1000
CALLS: Final = 5
THINK: Final = 0.05
"""Sessions that run at once, the calls of each, and the seconds for which a model thinks before each answer."""
ARGUMENTS: Final[Arguments] = {"x": 1, "y": "abc"}
_IDS: Final = count(1)


def new_id() -> str:
    """Return a call id that is unique in the process."""
    return f"call_{next(_IDS)}"


Call: TypeAlias = tuple[str, str, Arguments]
"""One tool call of an answer: its id, the tool's name, the arguments."""


class Script:
    """What the model says: `answers` in order, each after `think` seconds."""

    __slots__ = ("answers", "given", "think")

    def __init__(
        self, answers: Sequence[dict[str, object]], think: float = 0.0
    ) -> None:
        self.answers = answers
        self.given = 0
        self.think = think

    async def answer(self) -> dict[str, object]:
        """Give the next answer."""
        if self.think:
            await asyncio.sleep(self.think)
        return self.next()

    def next(self) -> dict[str, object]:
        """Take the next answer from the list."""
        answer = self.answers[self.given]
        self.given += 1
        return answer


async def noop(x: int, y: str = "") -> str:
    """Return the number as text."""
    return str(x)


def replies(steps: Sequence[int]) -> list[dict[str, object]]:
    """Make a turn's answers: one for each step with that many tool calls, and a last one with text."""
    asking: list[dict[str, object]] = [
        {
            "role": "assistant",
            "text": "",
            "calls": [(new_id(), "noop", ARGUMENTS) for _ in range(calls)],
        }
        for calls in steps
    ]
    return [*asking, {"role": "assistant", "text": "done", "calls": []}]


async def turn(
    script: Script, tools: Mapping[str, ToolFunction], history: list[dict[str, object]]
) -> object:
    """Run one turn and return its answer."""
    history.append({"role": "user", "text": PROMPT})
    while True:
        reply = await script.answer()
        history.append(reply)
        calls: list[Call] = reply["calls"]  # type: ignore[assignment]  # `replies` puts a list of calls there
        if not calls:
            return reply["text"]
        if len(calls) == 1:
            _, name, arguments = calls[0]
            results = [await tools[name](**arguments)]
        else:
            results = await asyncio.gather(
                *[tools[name](**arguments) for _, name, arguments in calls]
            )
        for (call_id, _, _), result in zip(calls, results):  # noqa: B905  # checking the lengths costs a tenth
            history.append({"role": "tool", "id": call_id, "text": result})


def turn_sample(steps: Sequence[int], turns: int) -> Callable[[], float]:
    """Return what measures `turns` turns, each with a history of its own: seconds a turn."""

    async def sample() -> float:
        tools: dict[str, ToolFunction] = {"noop": noop}
        histories: list[list[dict[str, object]]] = [[] for _ in range(turns)]
        prepared = [(Script(replies(steps)), history) for history in histories]
        gc.collect()
        started = process_time()
        for script, history in prepared:
            await turn(script, tools, history)
        return (process_time() - started) / turns

    return lambda: asyncio.run(sample())


async def observe(event: object) -> None:
    """Hear an event and do nothing."""


async def _emit(
    handlers: Sequence[Callable[[object], Awaitable[None]]], event: Mapping[str, object]
) -> None:
    for handler in handlers:
        await handler(event)


def emit_sample(handlers: int, times: int) -> Callable[[], float]:
    """Return what measures one event to a list of awaited handlers: seconds an event."""

    async def sample() -> float:
        listening = (observe,) * handlers
        event: dict[str, object] = {"tool_name": "noop", "tool_input": ARGUMENTS}
        gc.collect()
        started = process_time()
        for _ in range(times):
            await _emit(listening, event)
        return (process_time() - started) / times

    return lambda: asyncio.run(sample())


async def _pieces(count: int) -> AsyncIterator[str]:
    for _ in range(count):
        yield PIECE


def stream_sample(count: int) -> Callable[[], float]:
    """Return what measures an answer of that many pieces, read from an async generator: seconds an answer."""

    async def sample() -> float:
        gc.collect()
        started = process_time()
        text = "".join([piece async for piece in _pieces(count)])
        seconds = process_time() - started
        if len(text) != count * len(PIECE):
            raise RuntimeError("a piece is lost")
        return seconds

    return lambda: asyncio.run(sample())


async def think_time_turns(sessions: int, calls: int, think: float) -> float:
    """Run a turn of `calls` calls in each of `sessions` sessions at once; return the seconds it took."""
    scripts = [Script(replies([1] * calls), think) for _ in range(sessions)]
    gc.collect()
    started = perf_counter()
    await asyncio.gather(*[turn(script, {"noop": noop}, []) for script in scripts])
    return perf_counter() - started
