"""A model that needs no script: it calls each tool once, and then answers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import cast

from amplifier.testing.schema_values import make_value
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ProviderInfo,
    ToolCall,
    Usage,
)
from amplifier_sdk.content import TextBlock, ToolCallBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.providers import BaseProvider
from amplifier_sdk.streaming import Delta, TextDelta

__all__ = ["AutoModel"]


class AutoModel(BaseProvider):
    """A provider for tests of an agent's tools and outputs, without a word of script.

    Its first answer calls each tool that it is offered, once in a conversation, with arguments made of the tool's
    schema. Then it answers: with a value of the schema that the request asks for, else with `text`. The same seed
    gives the same arguments and values.

    Args:
        seed: another one gives other values.
        text: what it answers where no schema is asked for.
    """

    name = "auto"

    def __init__(self, *, seed: int = 0, text: str = "Done.") -> None:
        self.seed = seed
        self.text = text
        self.requests: list[ChatRequest] = []

    def get_info(self) -> ProviderInfo:
        """Say that it takes tools and schemas."""
        return ProviderInfo(
            id=self.name,
            display_name="Values made of schemas (no model)",
            capabilities=("tools", "streaming", "json_schema"),
            defaults={
                "model": "auto",
                "context_window": 200_000,
                "max_output_tokens": 8_000,
            },
        )

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Call the tools that were not called yet, or answer.

        Raises:
            ValueError: nothing can be made of a tool's schema, or of the answer's; names the tool and the place.
        """
        self.requests.append(request)
        usage = Usage(
            input_tokens=len(request.messages),
            output_tokens=1,
            total_tokens=len(request.messages) + 1,
        )
        calls = self._calls(request)
        if calls:
            yield ChatResponse(
                tool_calls=calls, usage=usage, finish_reason="tool_calls"
            )
            return
        text = self._answer(request)
        yield TextDelta(text=text)
        yield ChatResponse(
            content=(TextBlock(text=text),), usage=usage, finish_reason="stop"
        )

    def _calls(self, request: ChatRequest) -> list[ToolCall]:
        # from the request, since one model may serve several conversations
        called = {
            block.name
            for message in request.messages
            for block in (
                message.content if not isinstance(message.content, str) else ()
            )
            if isinstance(block, ToolCallBlock)
        }
        return [
            ToolCall(
                id=f"auto-{len(request.messages)}-{number}",
                name=spec.name,
                arguments=self._arguments(spec.name, spec.parameters),
            )
            for number, spec in enumerate(request.tools or ())
            if spec.name not in called
        ]

    def _arguments(self, name: str, schema: Mapping[str, JSONValue]) -> JSONObject:
        try:
            return cast("JSONObject", make_value(schema, seed=self.seed))
        except ValueError as error:
            raise ValueError(f"AutoModel cannot call {name!r}: {error}") from error

    def _answer(self, request: ChatRequest) -> str:
        wanted = request.response_format or {}
        schema = wanted.get("schema")
        if not isinstance(schema, Mapping):
            return self.text
        return json.dumps(make_value(schema, seed=self.seed))
