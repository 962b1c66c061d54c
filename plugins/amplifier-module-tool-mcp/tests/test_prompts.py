"""Prompts of servers are commands that a person types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_kit.commands import COMMANDS, CommandError, CommandPrompt, SessionCommand
from amplifier_sdk.jsontypes import JSONObject

pytestmark = pytest.mark.process

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Scripted = Callable[..., JSONObject]  # type: ignore[explicit-any]  # options go by name
Until = Callable[[Callable[[], object]], Awaitable[None]]


@pytest.fixture
def commands() -> Callable[[AmplifierSession], Awaitable[list[SessionCommand]]]:
    async def commands(session: AmplifierSession) -> list[SessionCommand]:
        found: list[SessionCommand] = []
        for part in await session.coordinator.collect_contributions(COMMANDS):
            assert isinstance(part, list)
            found += part
        return found

    return commands


Commands = Callable[[AmplifierSession], Awaitable[list[SessionCommand]]]


async def test_a_prompt_is_a_command(
    opened: Open, commands: Commands, scripted: Scripted
) -> None:
    async with opened({"s": scripted()}) as one:
        (command,) = await commands(one)
        assert (command.name, command.description) == ("mcp:s:review", "Look at it.")
        assert command.argument_hint == "<topic> [style]"
        assert command.source == "mcp:s"
        made = await command.make("errors 'in a' friendly way")
        assert isinstance(made, CommandPrompt)
        assert made.text == 'Review {"topic": "errors", "style": "in a friendly way"}.'
        with pytest.raises(CommandError, match="missing: 'topic'"):
            await command.make("")
        made = await command.make("it's")
        assert isinstance(made, CommandPrompt)
        assert made.text == 'Review {"topic": "it\'s"}.'


async def test_prompts_can_be_left_out(
    opened: Open, commands: Commands, scripted: Scripted
) -> None:
    async with opened({"s": scripted()}, prompts=False) as one:
        assert await commands(one) == []


async def test_a_server_that_is_gone_offers_none_and_says_why(
    opened: Open,
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    failure: Text,
    scripted: Scripted,
    until: Until,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.server._FIRST_WAIT", 30.0)
    async with opened({"s": scripted("dies")}) as one:
        (command,) = await commands(one)
        await failure(one, "mcp__s__echo", text="x")
        await until(lambda: one.coordinator.tools["mcp__s__echo"].server.ready is None)  # type: ignore[attr-defined]
        assert await commands(one) == []
        with pytest.raises(CommandError, match=r"cannot be used|in 30 s"):
            await command.make("x")
