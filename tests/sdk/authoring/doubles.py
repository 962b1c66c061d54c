"""Doubles of the parts that a loop and a module meet: an answering provider, a plain memory."""

from __future__ import annotations

from amplifier.testing import MockContextManager, ScriptedProvider
from amplifier_sdk import ChatResponse, TextBlock, ToolCall, Usage

__all__ = ["Answers", "PlainContext", "answer", "calling"]

PlainContext = MockContextManager


def answer(text: str, *, tokens: int = 2) -> ChatResponse:
    """Build an answer of text alone."""
    usage = Usage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
    return ChatResponse(
        content=[TextBlock(text=text)], usage=usage, finish_reason="stop"
    )


def calling(*calls: ToolCall, text: str = "") -> ChatResponse:
    """Build an answer that calls tools."""
    content = [TextBlock(text=text)] if text else []
    return ChatResponse(content=content, tool_calls=calls, finish_reason="tool_calls")


class Answers(ScriptedProvider):
    """Gives its answers in order and keeps the requests; an exception among them is raised."""

    def __init__(
        self, *answers: ChatResponse | Exception, name: str = "answers"
    ) -> None:
        super().__init__(*answers, name=name)
