"""The model of the ten tasks: it answers what the page asks, so that its transcripts stay the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from decimal import Decimal
from typing import Final

from amplifier_sdk import (
    BaseProvider,
    ChatRequest,
    ChatResponse,
    Delta,
    ProviderInfo,
    TextBlock,
    ToolCall,
    Usage,
    provider,
)
from amplifier_sdk.jsontypes import JSONValue

Call = tuple[str, dict[str, JSONValue]]

TASKS: Final[Mapping[str, tuple[tuple[Call, ...], str]]] = {
    "Which file says": ((), "notes.txt does."),
    "an hour later": (
        (
            ("read_file", {"file_path": "notes.txt"}),
            (
                "edit_file",
                {
                    "file_path": "notes.txt",
                    "old_string": "10:00",
                    "new_string": "11:00",
                },
            ),
        ),
        "It is at 11:00 now.",
    ),
    "Push it": ((("bash", {"command": "git push origin main"}),), "It is pushed."),
    "On which day": ((), "On Friday."),
    "apple": ((("price_of", {"fruit": "apple"}),), "It costs 2 EUR."),
}
"""For each question the calls that come before the answer, one after the other."""


@provider
class ShopModel(BaseProvider):
    """Knows the questions of one page."""

    name = "shop"

    def get_info(self) -> ProviderInfo:
        """Describe the model."""
        return ProviderInfo(
            id="shop",
            display_name="Shop",
            capabilities=["streaming"],
            defaults={"model": "shop-1", "context_window": 100_000},
        )

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Answer, or call the next tool."""
        asked = [
            index
            for index, message in enumerate(request.messages)
            if message.role == "user"
        ][-1]
        text = request.messages[asked].text
        calls, answer = next(task for words, task in TASKS.items() if words in text)
        done = sum(message.role == "tool" for message in request.messages[asked:])
        usage = Usage(
            input_tokens=900,
            output_tokens=30,
            total_tokens=930,
            cost_usd=Decimal("0.0032"),
        )
        if done < len(calls):
            name, arguments = calls[done]
            call = ToolCall(id=f"c{done}", name=name, arguments=arguments)
            yield ChatResponse(
                content=[], tool_calls=[call], usage=usage, finish_reason="tool_calls"
            )
        else:
            yield ChatResponse(
                content=[TextBlock(text=answer)], usage=usage, finish_reason="stop"
            )
