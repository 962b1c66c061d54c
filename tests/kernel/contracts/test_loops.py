"""What a loop is called with."""

from __future__ import annotations

import pytest

from amplifier import (
    HookRegistry,
)
from amplifier_sdk.contracts import (
    ContextManager,
    Hooks,
    Provider,
    Tool,
)
from tests.doubles import (
    PlainLoop,
    build_session,
)


async def test_a_loop_gets_the_registry_and_returns_text() -> None:
    heard: list[str] = []

    async def execute(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        assert isinstance(hooks, HookRegistry)
        hooks.register("own:event", lambda event, data: heard.append(event))
        return prompt.upper()

    async with build_session(loop=PlainLoop(execute)) as session:
        assert await session.execute("hello") == "HELLO"
        await session.coordinator.hooks.emit("own:event", {})

    assert heard == ["own:event"]


@pytest.mark.parametrize("takes_it", [True, False])
async def test_a_loop_gets_the_coordinator_if_it_takes_one(takes_it: bool) -> None:
    seen: list[object] = []

    class Taking:
        async def execute(
            self,
            prompt: str,
            context: ContextManager,
            providers: dict[str, Provider],
            tools: dict[str, Tool],
            hooks: Hooks,
            coordinator: object,
        ) -> str:
            seen.append(coordinator)
            return "taken"

    async def five(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        return "five"

    async with build_session(
        "x", loop=Taking() if takes_it else PlainLoop(five)
    ) as session:
        assert await session.execute("go") == ("taken" if takes_it else "five")

        assert seen == ([session.coordinator] if takes_it else [])
