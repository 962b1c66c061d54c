"""The modules beside the one under test: each does the minimum its contract asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

import anyio
import attrs

from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ModelInfo,
    ProviderInfo,
    ToolCall,
)
from amplifier_sdk.content import TextBlock
from amplifier_sdk.contracts import Provider
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import Loop, Turn
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import ToolResult

TEXT_SCHEMA: JSONObject = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "any text"}},
    "required": ["text"],
    "additionalProperties": False,
}


class ListContext:
    """A list of messages; `asked` has the budget and provider of each request for a view."""

    def __init__(self) -> None:
        self.messages: list[MessageDict] = []
        self.asked: list[tuple[int | None, Provider | None]] = []

    async def add_message(self, message: MessageDict, /) -> None:
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        self.asked.append((token_budget, provider))
        # a copy, since the contract's view is the caller's own
        return list(self.messages)

    async def get_messages(self) -> list[MessageDict]:
        return list(self.messages)

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.messages = list(messages)

    async def clear(self) -> None:
        self.messages = []

    @property
    def roles(self) -> list[JSONValue]:
        return [message["role"] for message in self.messages]

    @property
    def results(self) -> list[tuple[JSONValue, JSONValue]]:
        """The stored tool results: call ids and texts, in order."""
        return [
            (m["tool_call_id"], m["content"])
            for m in self.messages
            if m["role"] == "tool"
        ]


class PlainLoop(Loop):
    """Asks, runs the tools that are called, repeats."""

    name = "loop-plain"

    async def run(self, turn: Turn) -> str:
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)


class PlainProvider:
    """A provider that cannot stream."""

    name = "plain"

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name="Plain")

    async def list_models(self) -> list[ModelInfo]:
        return []

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        return ChatResponse(content=[TextBlock(text="Plain.")], finish_reason="stop")

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        return list(response.tool_calls or ())


@attrs.define(eq=False)
class RecordingTool:
    """A tool that answers with a function of its text, and records every input."""

    name: str = "work"
    work: Callable[[str], Awaitable[object]] | None = None
    description: str = "Does some work."
    input_schema: Mapping[str, JSONValue] = attrs.field(factory=lambda: TEXT_SCHEMA)
    inputs: list[JSONObject] = attrs.field(factory=list)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Record the input, do the work, and answer with what came of it, or with the text itself."""
        self.inputs.append(input)
        # whatever it is given: a tool that raises here would hide what the loop did
        text = str(input.get("text"))
        value = text if self.work is None else await self.work(text)
        if isinstance(value, ToolResult):
            return value
        return ToolResult(output=str(value))


@attrs.define(eq=False)
class WaitingTool(RecordingTool):
    """A tool that waits until it is released; says when a call began and whether one came to its end."""

    started: anyio.Event = attrs.field(factory=anyio.Event)
    released: anyio.Event = attrs.field(factory=anyio.Event)
    is_finished: bool = False

    async def execute(self, input: JSONObject, /) -> ToolResult:
        self.started.set()
        await self.released.wait()
        self.is_finished = True
        return await super().execute(input)


@attrs.define(eq=False)
class Approver:
    """Answers every question with the same option, and records the questions."""

    reply: str
    questions: list[str] = attrs.field(factory=list)

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,
        default: Literal["allow", "deny"],
        /,
    ) -> str:
        self.questions.append(prompt)
        return self.reply
