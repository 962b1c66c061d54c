"""Questions take the prompt's place, one at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import attrs

from amplifier.cli._approval import TerminalApproval
from amplifier.cli._chat._questions import ChatApproval
from tests.cli.chat.conftest import Paper


@attrs.define(eq=False)
class Person(TerminalApproval):
    """Somebody who thinks until `decided` is set."""

    reported: list[str]
    asked: anyio.Event = attrs.field(factory=anyio.Event)
    decided: anyio.Event = attrs.field(factory=anyio.Event)

    async def request_approval(
        self, prompt: str, options: Sequence[str], timeout: float, default: str, /
    ) -> str:
        self.reported.append(f"asked {prompt}")
        self.asked.set()
        await self.decided.wait()
        self.reported.append(f"answered {prompt}")
        return options[0]


class Board(Paper):
    def __init__(self, reported: list[str]) -> None:
        super().__init__()
        self.reported = reported

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        self.reported.append("away")
        yield
        self.reported.append("back")


async def test_questions_are_asked_alone_after_begun_output() -> None:
    reported: list[str] = []
    person, board = Person(reported), Board(reported)
    approval = ChatApproval(
        lambda: board,
        lambda question: reported.append(f"shown before {question}"),
        lambda: reported.append("called"),
        person,
    )
    answers: list[str] = []

    async def ask(prompt: str) -> None:
        answers.append(
            await approval.request_approval(prompt, ["Yes", "No"], 9.0, "deny")
        )

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "one")
            await person.asked.wait()
            group.start_soon(ask, "two")
            await anyio.wait_all_tasks_blocked()
            assert reported == [
                "shown before one",
                "away",
                "called",
                "asked one",
                "shown before two",
            ]
            person.decided.set()

    assert answers == ["Yes", "Yes"]
    assert reported[5:] == [
        "answered one",
        "back",
        "away",
        "called",
        "asked two",
        "answered two",
        "back",
    ]
