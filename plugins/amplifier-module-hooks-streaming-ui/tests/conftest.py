"""Both backends, and turns that are shown on a stream of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from amplifier.testing import TestCoordinator
from amplifier_module_hooks_streaming_ui import mount
from amplifier_sdk import Coordinator, JSONValue
from amplifier_sdk.events import CONTENT_BLOCK_DELTA, ContentBlockDelta
from amplifier_sdk.streaming import TextDelta

ShownOn = Callable[..., AbstractAsyncContextManager[TestCoordinator]]  # type: ignore[explicit-any]  # by name


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


@pytest.fixture(scope="session")
def shown_on() -> ShownOn:
    """Open a coordinator whose turns are shown on a stream; all of it is there when the block is left."""

    @asynccontextmanager
    async def shown_on(
        stream: object,
        config: Mapping[str, JSONValue] | None = None,
        *,
        session_id: str = "s",
        parent_id: str | None = None,
        shown: frozenset[str] = frozenset(),
    ) -> AsyncIterator[TestCoordinator]:
        coordinator = TestCoordinator(session_id=session_id, parent_id=parent_id)
        coordinator.register_capability("ui.stream", stream)
        coordinator.register_capability("ui.shown", shown)
        async with coordinator:
            await mount(coordinator, config or {})
            yield coordinator

    return shown_on


@pytest.fixture(scope="session")
def say() -> Callable[[Coordinator, str], Awaitable[None]]:
    """Let a model say a piece of text."""

    async def say(coordinator: Coordinator, text: str) -> None:
        payload = ContentBlockDelta(block_index=0, delta=TextDelta(text=text))
        await coordinator.hooks.emit(CONTENT_BLOCK_DELTA, payload)

    return say
