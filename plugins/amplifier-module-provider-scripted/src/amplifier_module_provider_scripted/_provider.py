"""The provider: one scripted answer for each request, in order."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Final

import anyio
import attrs

from amplifier_module_provider_scripted._script import ScriptedResponse, read_script
from amplifier_sdk import BaseProvider, ChatRequest, ChatResponse, ProviderInfo, provider
from amplifier_sdk.errors import LLMError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["ScriptedConfig", "ScriptedProvider"]

MODEL: Final = "scripted"


@attrs.frozen(kw_only=True)
class ScriptedConfig:
    """The provider's settings.

    Args:
        responses: a list of answers (texts, or mappings as in `ScriptedResponse`), or the path of a JSON or
            JSON Lines file with one.
        repeat: start the script again at its end, instead of failing.
        name: how the provider is called, so that several can be told apart.
        context_window: tokens it claims to take.
        max_output_tokens: tokens it claims to write.
    """

    responses: JSONValue
    repeat: bool = False
    name: str = "scripted"
    context_window: int = 200_000
    max_output_tokens: int = 8_000


@provider
class ScriptedProvider(BaseProvider):
    """Answers from a script and keeps the requests it saw in `requests`."""

    name = "scripted"

    def __init__(self, config: ScriptedConfig) -> None:
        self._script = read_script(config.responses, subject="script")
        self._repeat = config.repeat
        self._next = 0
        self._info = ProviderInfo(
            id=config.name,
            display_name="Scripted answers (no model)",
            capabilities=("tools", "streaming"),
            defaults={
                "model": MODEL,
                "context_window": config.context_window,
                "max_output_tokens": config.max_output_tokens,
            },
        )
        self.name = config.name  # type: ignore[misc]  # several in one session are told apart by it
        self.requests: list[ChatRequest] = []

    def get_info(self) -> ProviderInfo:
        """Say that this is a script."""
        return self._info

    async def deltas(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Play the next answer.

        Raises:
            LLMError: the script is at its end, or says so.
        """
        self.requests.append(request)
        number, answer = self._take()
        if answer.delay:
            await anyio.sleep(answer.delay)
        if answer.thinking is not None:
            yield ThinkingDelta(text=answer.thinking)
        for piece in answer.pieces:
            yield TextDelta(text=piece, index=0 if answer.thinking is None else 1)
        if answer.error is not None:
            raise answer.error.build(self.name)
        response = answer.build(number, len(request.messages))
        for index, call in enumerate(response.tool_calls or (), start=len(response.content) - len(answer.tool_calls)):
            text = call.raw_arguments if call.raw_arguments is not None else _json(call.arguments)
            yield ToolCallDelta(id=call.id, name=call.name, arguments=text, index=index)
        yield response

    def _take(self) -> tuple[int, ScriptedResponse]:
        number, length = self._next, len(self._script)
        if not length or (number >= length and not self._repeat):
            raise LLMError(f"The script has {length} answers and this is request {number + 1}", provider=self.name)
        self._next += 1
        return number, self._script[number % length]


def _json(arguments: JSONValue) -> str:
    return json.dumps(arguments, ensure_ascii=False)
