"""The base class of providers: write `deltas`, get the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager

import attrs

from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ModelInfo,
    ProviderInfo,
    ToolCall,
)
from amplifier_sdk.errors import StreamError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.streaming import Delta

__all__ = ["BaseProvider"]


class BaseProvider(ABC):
    """A provider whose answers stream.

    Write `name` and the async generator `deltas`; `stream`, `complete` and `parse_tool_calls` follow from them.
    A provider that says more of itself in `get_info`, such as its model and the model's window, lists it too.
    """

    name: str

    def get_info(self) -> ProviderInfo:
        """Say what the provider is; no network. Without more it is its name."""
        return ProviderInfo(
            id=self.name, display_name=self.name, capabilities=("streaming",)
        )

    @abstractmethod
    def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Yield the answer's deltas, then exactly one `ChatResponse`, which is complete."""

    async def list_models(self) -> list[ModelInfo]:
        """List the one model that `get_info().defaults` describes."""
        info = self.get_info()
        model = info.defaults.get("model")
        window = info.defaults.get("context_window")
        output = info.defaults.get("max_output_tokens")
        if (
            not isinstance(model, str)
            or not isinstance(window, int)
            or not isinstance(output, int)
        ):
            return []
        return [
            ModelInfo(
                id=model,
                display_name=info.display_name,
                context_window=window,
                max_output_tokens=output,
                capabilities=info.capabilities,
            )
        ]

    @asynccontextmanager
    async def stream(
        self, request: ChatRequest, /
    ) -> AsyncIterator[AsyncIterator[Delta | ChatResponse]]:
        """Open one answer; leaving the block early closes it."""
        # a generator that nobody closes would be finished whenever it is collected, in
        # another task than it began in
        async with aclosing(self.deltas(request)) as items:
            yield items

    async def complete(
        self,
        request: ChatRequest | Sequence[Message] | Sequence[MessageDict],
        /,
        **options: JSONValue,
    ) -> ChatResponse:
        """Answer one request completely.

        Args:
            request: the request, or its messages alone.
            options: fields of the request that replace its own; other names go into its `extras`.

        Raises:
            LLMError: as `deltas` raises it; a stream without its last item is a `StreamError`.
            ValueError: one of the messages has a role or content that no message can have.
        """
        async with self.stream(_request_of(request, options)) as items:
            async for item in items:
                if isinstance(item, ChatResponse):
                    return item
        # what came before may be half a sentence, or half of a call's arguments
        raise StreamError("The answer ended before it was whole", provider=self.name)

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        """Return the tool calls of an answer."""
        return list(response.tool_calls or ())


def _request_of(
    asked: ChatRequest | Sequence[Message] | Sequence[MessageDict],
    options: Mapping[str, JSONValue],
) -> ChatRequest:
    """Return what is asked as a request, with the options of the call in it."""
    if isinstance(asked, ChatRequest):
        request = asked
    else:
        read = [
            message if isinstance(message, Message) else Message.from_dict(message)
            for message in asked
        ]
        request = ChatRequest(messages=read)
    if not options:
        return request
    known = attrs.fields_dict(ChatRequest)
    extras = {**request.extras}
    fields: dict[str, JSONValue] = {}
    for name, value in options.items():
        if name in known:
            fields[name] = value
        else:
            extras[name] = value
    return attrs.evolve(request, **{"extras": extras, **fields})  # type: ignore[arg-type]  # the caller's values
