"""Doubles of the parts that a loop and a module meet: an answering provider, a listening ear, a plain memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import attrs

from amplifier.kernel.hooks import HookRegistry
from amplifier_sdk import BaseProvider, ChatRequest, ChatResponse, ProviderInfo, TextBlock, ToolCall, Usage
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.streaming import Delta, TextDelta

__all__ = ["Answers", "Ear", "PlainContext", "answer", "calling"]


def answer(text: str, *, tokens: int = 2) -> ChatResponse:
    """Build an answer of text alone."""
    usage = Usage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
    return ChatResponse(content=[TextBlock(text=text)], usage=usage, finish_reason="stop")


def calling(*calls: ToolCall, text: str = "") -> ChatResponse:
    """Build an answer that calls tools."""
    content = [TextBlock(text=text)] if text else []
    return ChatResponse(content=content, tool_calls=calls, finish_reason="tool_calls")


class Answers(BaseProvider):
    """Gives its answers in order and keeps the requests; an exception among them is raised."""

    def __init__(self, *answers: ChatResponse | Exception, name: str = "answers") -> None:
        self.name = name  # type: ignore[misc]  # several stand beside each other in a test
        self.requests: list[ChatRequest] = []
        self._answers = list(answers)

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name="Answers")

    async def deltas(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        self.requests.append(request)
        following = self._answers.pop(0)
        if isinstance(following, Exception):
            raise following
        yield TextDelta(text=following.text)
        yield following


class PlainContext:
    """Remembers messages in a list."""

    def __init__(self, messages: Sequence[MessageDict] = ()) -> None:
        self.messages = list(messages)

    async def add_message(self, message: MessageDict, /) -> None:
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: object = None
    ) -> Sequence[MessageDict]:
        return list(self.messages)

    async def get_messages(self) -> Sequence[MessageDict]:
        return list(self.messages)

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.messages = list(messages)

    async def clear(self) -> None:
        self.messages.clear()


@attrs.define(eq=False)
class Ear:
    """Hears every event of a registry."""

    hooks: HookRegistry
    heard: list[tuple[str, dict[str, object]]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.hooks.register("*", self._hear, name="ear")

    def _hear(self, event: str, data: dict[str, object]) -> None:
        self.heard.append((event, data))

    @property
    def names(self) -> list[str]:
        """The events' names, in order."""
        return [event for event, _ in self.heard]

    def data(self, event: str) -> dict[str, object]:
        """Return what the one event of a name carried."""
        (found,) = [data for name, data in self.heard if name == event]
        return found
