"""pydantic-ai: an agent over a model of our own."""

from __future__ import annotations

import asyncio  # noqa: TID251  # the peer runs on asyncio alone
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from pydantic_ai import Agent, Tool  # type: ignore[import-not-found]  # it is installed in an environment of its own
from pydantic_ai.messages import (  # type: ignore[import-not-found]  # likewise
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, StreamedResponse  # type: ignore[import-not-found]  # likewise
from pydantic_ai.usage import RequestUsage, UsageLimits  # type: ignore[import-not-found]  # likewise

from benchmarks import floor
from benchmarks.peers.adapter import Peer, main

LIMITS = UsageLimits(request_limit=None)


@dataclass
class PreparedStream(StreamedResponse):  # type: ignore[explicit-any, misc]  # untyped where it is not installed
    """An answer in pieces."""

    pieces: int = 0

    model_name = "prepared"
    provider_name = "prepared"
    provider_url = None
    timestamp = datetime.now(UTC)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for _ in range(self.pieces):
            for event in self._parts_manager.handle_text_delta(
                vendor_part_id=0, content=floor.PIECE
            ):
                yield event

    async def close_stream(self) -> None:
        """Keep everything: nothing was opened."""


class PreparedModel(Model):  # type: ignore[misc]  # untyped where it is not installed
    """Gives the answers it was handed."""

    model_name = "prepared"
    system = "prepared"
    provider = None

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self.peer = peer
        self.answers: list[ModelResponse] = []
        self.given = 0
        self.pieces = 0

    async def request(
        self, messages: object, settings: object, parameters: object
    ) -> ModelResponse:
        """Give the next answer."""
        self.prepare_request(settings, parameters)
        if self.peer.think:
            await asyncio.sleep(self.peer.think)
        answer = self.answers[self.given]
        self.given += 1
        return answer

    @asynccontextmanager
    async def request_stream(
        self,
        messages: object,
        settings: object,
        parameters: object,
        context: object = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Give an answer in pieces."""
        yield PreparedStream(model_request_parameters=parameters, pieces=self.pieces)


class AgentRuns(Peer):
    """Runs of an agent of `pydantic-ai`."""

    name: ClassVar[str] = "pydantic-ai"

    async def open(self) -> None:
        """Make the agent."""
        self.model = PreparedModel(self)
        self.agent = Agent(self.model, tools=[Tool(floor.noop, name="noop")])

    async def prepare(self, steps: Sequence[int]) -> None:
        """Make one turn's answers and forget the messages."""
        usage = RequestUsage(input_tokens=1, output_tokens=1)
        asking = [
            ModelResponse([_call() for _ in range(calls)], usage=usage)
            for calls in steps
        ]
        self.model.answers = [*asking, ModelResponse([TextPart("done")], usage=usage)]
        self.model.given = 0
        self.messages: list[ModelMessage] = []

    async def turn(self) -> str:
        """Run the agent to its answer."""
        run = await self.agent.run(
            floor.PROMPT, message_history=self.messages, usage_limits=LIMITS
        )
        return str(run.output)

    async def remember(self, messages: int) -> bool:
        """Make the messages that the next run is given."""
        said = (ModelRequest([UserPromptPart("m")]), ModelResponse([TextPart("m")]))
        self.messages = [message for _ in range(messages // 2) for message in said]
        return True

    async def stream(self, pieces: int) -> str:
        """Read the text of a run as it comes."""
        self.model.pieces = pieces
        async with self.agent.run_stream(floor.PROMPT) as run:
            return "".join(
                [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
            )

    async def close(self) -> None:
        """Keep everything: nothing was opened."""


def _call() -> ToolCallPart:
    return ToolCallPart("noop", dict(floor.ARGUMENTS), tool_call_id=floor.new_id())


if __name__ == "__main__":
    main(AgentRuns)
