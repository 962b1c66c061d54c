"""agent-framework: an agent over a chat client of our own, with the layer that calls functions."""

from __future__ import annotations

import asyncio  # noqa: TID251  # the peer runs on asyncio alone
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

from agent_framework import (  # type: ignore[import-not-found]  # it is installed in an environment of its own
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

from benchmarks import floor
from benchmarks.peers.adapter import Peer, main

ENDLESS = {"max_iterations": 10**6, "enabled": True}


class PreparedClient(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc]  # untyped where not installed
    """Gives the answers it was handed."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(function_invocation_configuration=ENDLESS)
        self.peer = peer
        self.answers: list[ChatResponse] = []
        self.given = 0
        self.pieces = 0

    def _inner_get_response(
        self, *, messages: object, stream: bool, options: object, **more: object
    ) -> object:
        if stream:
            return ResponseStream(self._updates(), finalizer=ChatResponse.from_updates)
        return self._next()

    async def _next(self) -> ChatResponse:
        if self.peer.think:
            await asyncio.sleep(self.peer.think)
        answer = self.answers[self.given]
        self.given += 1
        return answer

    async def _updates(self) -> AsyncIterator[ChatResponseUpdate]:
        for _ in range(self.pieces):
            yield ChatResponseUpdate(
                role="assistant", contents=[Content.from_text(floor.PIECE)]
            )


class AgentRuns(Peer):
    """Runs of an agent of `agent-framework`, each in a session of its own."""

    name: ClassVar[str] = "agent-framework"

    async def open(self) -> None:
        """Make the agent."""
        self.client = PreparedClient(self)
        noop = tool(floor.noop, name="noop", approval_mode="never_require")
        self.agent = Agent(self.client, "be brief", tools=[noop])

    async def prepare(self, steps: Sequence[int]) -> None:
        """Make one turn's answers and an empty session."""
        asking = [
            ChatResponse(messages=Message("assistant", [_call() for _ in range(calls)]))
            for calls in steps
        ]
        self.client.answers = [
            *asking,
            ChatResponse(messages=Message("assistant", [Content.from_text("done")])),
        ]
        self.client.given = 0
        self.session = self.agent.create_session()

    async def turn(self) -> str:
        """Run the agent to its answer."""
        return str((await self.agent.run(floor.PROMPT, session=self.session)).text)

    async def remember(self, messages: int) -> bool:
        """Run a turn, with which the session begins to keep messages, and give it more of them."""
        answers = self.client.answers
        await self.turn()
        self.client.answers, self.client.given = answers, 0
        remembered = next(
            state
            for state in self.session.state.values()
            if isinstance(state, dict) and "messages" in state
        )
        roles = ("user", "assistant")
        remembered["messages"][:] = [
            Message(role, [Content.from_text("m")])
            for _ in range(messages // 2)
            for role in roles
        ]
        return True

    async def stream(self, pieces: int) -> str:
        """Read the updates of a run as they come."""
        self.client.pieces = pieces
        updates = self.agent.run(floor.PROMPT, session=self.session, stream=True)
        return "".join([update.text async for update in updates])

    async def close(self) -> None:
        """Keep everything: nothing was opened."""


def _call() -> Content:
    return Content.from_function_call(
        floor.new_id(), "noop", arguments=dict(floor.ARGUMENTS)
    )


if __name__ == "__main__":
    main(AgentRuns)
