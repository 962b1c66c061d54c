"""llm: a conversation's chain over an asynchronous model of our own, without its log."""

from __future__ import annotations

import asyncio  # noqa: TID251  # the peer runs on asyncio alone
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

import llm  # type: ignore[import-not-found]  # it is installed in an environment of its own

from benchmarks import floor
from benchmarks.peers.adapter import Peer, main

Answer = str | list[llm.ToolCall]


class PreparedModel(llm.AsyncModel):  # type: ignore[misc]  # untyped where it is not installed
    """Gives the answers it was handed."""

    model_id = "prepared"
    can_stream = True
    supports_tools = True

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.answers: list[Answer] = []
        self.given = 0
        self.pieces = 0

    async def execute(
        self,
        prompt: object,
        stream: bool,
        response: llm.AsyncResponse,
        conversation: object,
    ) -> AsyncIterator[str]:
        """Give the next answer, or pieces of one."""
        if self.peer.think:
            await asyncio.sleep(self.peer.think)
        for _ in range(self.pieces):
            yield floor.PIECE
        if self.pieces:
            return
        answer = self.answers[self.given]
        self.given += 1
        if isinstance(answer, str):
            yield answer
            return
        for call in answer:
            response.add_tool_call(call)


class Chain(Peer):
    """A conversation of `llm`."""

    name: ClassVar[str] = "llm"

    async def open(self) -> None:
        """Make the model and the tool."""
        self.model = PreparedModel(self)
        self.tool = llm.Tool.function(floor.noop, name="noop")

    async def prepare(self, steps: Sequence[int]) -> None:
        """Make one turn's answers and a fresh conversation."""
        self.model.answers = [
            *([_call() for _ in range(calls)] for calls in steps),
            "done",
        ]
        self.model.given = 0
        self.conversation = self.model.conversation(tools=[self.tool])
        self.messages: list[object] | None = None

    async def turn(self) -> str:
        """Run the chain to its end."""
        return str(
            await self.conversation.chain(
                floor.PROMPT, chain_limit=0, messages=self.messages
            ).text()
        )

    async def remember(self, messages: int) -> bool:
        """Make the messages that the next chain is given."""
        self.messages = [
            message
            for _ in range(messages // 2)
            for message in (llm.user("m"), llm.assistant("m"))
        ]
        return True

    async def stream(self, pieces: int) -> str:
        """Read the chain's pieces."""
        self.model.pieces = pieces
        return "".join(
            [
                piece
                async for piece in self.conversation.chain(floor.PROMPT, chain_limit=0)
            ]
        )

    async def close(self) -> None:
        """Keep everything: nothing was opened."""


def _call() -> llm.ToolCall:
    return llm.ToolCall(
        name="noop", arguments={**floor.ARGUMENTS}, tool_call_id=floor.new_id()
    )


if __name__ == "__main__":
    main(Chain)
