"""Agents that work on between the turns of a chat: listed, opened, stopped, and asked about at its end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio
import attrs
import pytest

from amplifier.cli._chat._keys import EndOfInput
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.chat.conftest import Chat, OpenChat


def calls(name: str, **arguments: JSONValue) -> JSONObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@attrs.frozen
class Stage:
    """A chat with an agent in its background, which waits for a pipe."""

    chat: Chat
    pipe: Path

    async def release(self) -> None:
        await anyio.to_thread.run_sync(self.pipe.write_text, "go on")

    async def until(self, *texts: str) -> None:
        await self.chat.screen.until_written(*texts)


async def until_asked(chat: Chat) -> None:
    """Wait until the agent was given its task."""
    (child,) = chat.talk.opened.session.family.open_children
    with anyio.fail_after(10):
        while not child.initialized:
            await anyio.wait_all_tasks_blocked()
        while not await child.coordinator.context.get_messages():
            await anyio.wait_all_tasks_blocked()


class OpenStage(Protocol):
    def __call__(self, *answers: JSONValue) -> AbstractAsyncContextManager[Stage]: ...


@pytest.fixture
def stage(open_chat: OpenChat, tmp_path: Path) -> OpenStage:
    """Open a chat whose first turn begins the agent."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    @asynccontextmanager
    async def opened(*answers: JSONValue) -> AsyncIterator[Stage]:
        finder: list[JSONValue] = [calls("receive", path=str(pipe)), "Under the bed."]
        agents: JSONObject = {
            "finder": {
                "description": "Finds what is lost.",
                "providers": [
                    {"module": "provider-scripted", "config": {"responses": finder}}
                ],
            }
        }
        begin = calls("task", agent="finder", instruction="Find it.", background=True)
        async with open_chat(
            [begin, "It is looked for.", *answers],
            "tool-task",
            "tool-trials",
            agents=agents,
        ) as chat:
            chat.screen.type("find my keys")
            await chat.screen.until_written("It is looked for.", "out tokens")
            try:
                await until_asked(chat)
                yield Stage(chat, pipe)
            finally:
                # whoever still reads must not wait for ever
                handle = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
                os.write(handle, b"go on")
                os.close(handle)

    return opened


async def test_an_agent_in_the_background_is_counted_listed_and_opened(
    stage: OpenStage,
) -> None:
    async with stage() as open_stage:
        screen = open_stage.chat.screen
        await screen.until(lambda paper: "1 in background" in paper.below)
        screen.type("/agents")
        await open_stage.until(
            "1  finder  background  Find it.",
            "/agents stop N",
            "Work can be given to:",
            "finder  Finds what is lost.",
        )
        screen.type("/agents 1")
        await open_stage.until("## You\n\nFind it.")
        await open_stage.release()
        await screen.until(lambda paper: "in background" not in paper.below)


async def test_the_model_reads_what_came_of_it_in_the_next_turn(
    stage: OpenStage,
) -> None:
    async with stage("Thanks.") as open_stage:
        await open_stage.release()
        chat = open_stage.chat
        await chat.screen.until(lambda paper: "in background" not in paper.below)
        chat.screen.type("where?")
        await open_stage.until("Thanks.")
        said = "\n".join(str(message) for message in await chat.talk.said())

    assert "that worked in the background has ended" in said
    assert "Under the bed." in said


async def test_it_is_stopped_by_its_number(stage: OpenStage) -> None:
    async with stage() as open_stage:
        screen = open_stage.chat.screen
        screen.type("/agents stop 2")
        await open_stage.until("Agents at work: 1")
        screen.type("/agents stop")
        await open_stage.until("Expected a number")
        screen.type("/agents stop 1")
        await open_stage.until("finder is stopped.")
        await screen.until(lambda paper: "in background" not in paper.below)


async def test_esc_stops_the_turn_and_not_the_background(stage: OpenStage) -> None:
    async with stage() as open_stage:
        chat = open_stage.chat
        session = chat.talk.opened.session
        await session.cancel(immediate=True)
        (child,) = session.family.open_children
        assert not child.coordinator.cancellation.is_cancelled
        await open_stage.release()
        await chat.screen.until(lambda paper: "in background" not in paper.below)


async def test_leaving_asks_and_stops_it_when_asked_again(stage: OpenStage) -> None:
    async with stage() as open_stage:
        chat = open_stage.chat
        chat.screen.end()
        await open_stage.until("Once more ends the chat. It stops 1 agent")
        assert not chat.ended.is_set()
        chat.screen.type("/exit")
        with anyio.fail_after(10):
            await chat.ended.wait()


async def test_a_terminal_that_is_gone_is_not_asked(stage: OpenStage) -> None:
    async with stage() as open_stage:
        open_stage.chat.screen.press(EndOfInput(is_gone=True))
        with anyio.fail_after(10):
            await open_stage.chat.ended.wait()
