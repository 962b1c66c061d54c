"""What an `Agent` adds to a session of the same plan that the application writes itself."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import process_time
from typing import Final, TypeAlias

import anyio

from amplifier import Agent, AmplifierSession, ModuleLoader
from amplifier_sdk.jsontypes import JSONObject
from benchmarks.floor import PROMPT
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, bar
from benchmarks.subject import PreparedModel, answers, noop

__all__ = ["agents"]

OVER_SESSION: Final = 1.1
STEPS: Final = [1]
TIMES: Final = 5

Turn: TypeAlias = Callable[[PreparedModel], Awaitable[object]]


def agents(backend: str, effort: Effort) -> list[Row]:
    """A run in a session of its own, and a turn of an open session, each with one call."""
    model = PreparedModel()
    agent = Agent(model, tools=[noop])
    # as an application writes it, once
    plan = agent.plan()

    async def run(model: PreparedModel) -> object:
        return (await agent.run(PROMPT)).output

    async def run_by_hand(model: PreparedModel) -> object:
        async with _session(plan, model) as session:
            return await session.execute(PROMPT)

    whole = paired(
        _sample(model, run, backend), _sample(model, run_by_hand, backend), effort
    )
    turn = paired(
        _open_sample(agent, model, backend, by_hand=False),
        _open_sample(agent, model, backend, by_hand=True),
        effort,
    )
    return [
        bar(f"Agent.run, {backend}", whole.ratio, OVER_SESSION, str(whole)),
        bar(f"a turn of its session, {backend}", turn.ratio, OVER_SESSION, str(turn)),
    ]


@asynccontextmanager
async def _session(
    plan: JSONObject, model: PreparedModel
) -> AsyncIterator[AmplifierSession]:
    async def mount(_coordinator: object, _config: object) -> object:
        return model

    loader = ModuleLoader(
        modules={"agent-provider-prepared": mount, "agent-tool-noop": noop}
    )
    async with AmplifierSession(plan, loader) as session:
        yield session


def _sample(model: PreparedModel, turn: Turn, backend: str) -> Callable[[], float]:
    async def sample() -> float:
        await _timed(model, turn, 1)
        return await _timed(model, turn, TIMES)

    return lambda: anyio.run(sample, backend=backend)


def _open_sample(
    agent: Agent[None, str], model: PreparedModel, backend: str, *, by_hand: bool
) -> Callable[[], float]:
    async def sample() -> float:
        async with agent.session() as session:

            async def turn(model: PreparedModel) -> object:
                if by_hand:
                    return await session.session.execute(PROMPT)
                return (await session.run(PROMPT)).output

            await _timed(model, turn, 1)
            return await _timed(model, turn, TIMES)

    return lambda: anyio.run(sample, backend=backend)


async def _timed(model: PreparedModel, turn: Turn, times: int) -> float:
    """Return the seconds of each turn; what the model says is made before."""
    said = [answers(STEPS) for _ in range(times)]
    gc.collect()
    taken = 0.0
    for each in said:
        model.prepare(each)
        started = process_time()
        answer = await turn(model)
        taken += process_time() - started
        if answer != "done":
            raise RuntimeError(f"a turn answered something else than 'done': {answer}")
    return taken / times
