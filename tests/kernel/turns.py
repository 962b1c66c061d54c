"""Turns that are about to be cancelled, and turns with one call that handlers decide about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.events import TOOL_PRE
from tests.doubles import (
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)

__all__ = ["a_session", "cancel_from_outside", "cancelled_turn", "the_result"]


@asynccontextmanager
async def cancelled_turn(
    session: AmplifierSession, reached: anyio.Event
) -> AsyncIterator[list[TurnCancelled]]:
    """Run a turn beside the block, which begins at an event and cancels it; behind the block the list says how."""
    raised: list[TurnCancelled] = []

    async def run() -> None:
        with pytest.raises(TurnCancelled) as caught:
            await session.execute("go")
        raised.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await reached.wait()
        yield raised


async def cancel_from_outside(session: AmplifierSession, reached: anyio.Event) -> None:
    """Run a turn, and cancel the task that it runs in at an event."""
    async with anyio.create_task_group() as group:
        group.start_soon(session.execute, "go")
        await reached.wait()
        group.cancel_scope.cancel()


def a_session(
    *handlers: object, event: str = TOOL_PRE, **options: object
) -> tuple[AmplifierSession, Worker]:
    """A session whose first answer calls `work` with {"x": 1}, and handlers of one event."""
    worker = Worker(
        input_schema={"type": "object", "properties": {"x": {"type": "integer"}}}
    )
    session = build_session(
        calling(call("work", {"x": 1})),
        "end",
        tools=[worker],
        **options,  # type: ignore[arg-type]  # any
    )
    for number, handler in enumerate(handlers):
        session.coordinator.hooks.register(event, handler, name=f"h{number}")  # type: ignore[call-overload]  # any handler of any event
    return session, worker


async def the_result(session: AmplifierSession) -> str:
    """Run the turn and return what the model was told about its call."""
    with anyio.fail_after(5):
        async with session:
            assert await session.execute("go") == "end"
            return only_result(mounted_context(session.coordinator).messages)
