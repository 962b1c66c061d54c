"""The provider: text from the embedded model, and tool calls by the two questions a small model can answer."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.media.support import TEXT, MediaLimits
from amplifier_module_provider_local.config import LocalConfig
from amplifier_module_provider_local.context_window import Fitted, Ruler, fit
from amplifier_module_provider_local.conversation import RequestParts, goes_round
from amplifier_module_provider_local.engine import ServerProcess, StillWaiting
from amplifier_module_provider_local.examples import ask_for_arguments, ask_for_name
from amplifier_module_provider_local.tool_choice import RequiredTools, choose
from amplifier_sdk import BaseProvider, provider
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    Degradation,
    ProviderInfo,
    ResponseFormat,
    ToolCall,
    Usage,
)
from amplifier_sdk.content import TextBlock, ToolCallBlock
from amplifier_sdk.errors import InvalidRequestError, LLMError, NotFoundError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta, ToolCallDelta

__all__ = ["LocalProvider"]

_EMBEDDED_MODEL: Final = "smollm2-135m-instruct"

_FREE: Final = 1.1
"""The penalty on words said before: without one a small model repeats itself."""

_FAITHFUL: Final = 1.0
"""No penalty, where the answer retells what it was given."""

_CYCLE: Final = Degradation(
    requested="an answer to its end",
    actual="its beginning",
    reason="the model said the same over and over",
)


@provider
class LocalProvider(BaseProvider):
    """Answers with a model of 135 million parameters that runs on this machine, in a process of its own.

    It is embedded for first runs, examples and tests: it needs no key, no configuration and, once its weights
    are there, no network. Its answers are often wrong.
    """

    name = "local"

    def __init__(self, config: LocalConfig) -> None:
        self._config = config
        self._engine = ServerProcess(config)
        if config.model_path is None:
            self._model = _EMBEDDED_MODEL
        else:
            self._model = Path(config.model_path).stem

    def get_info(self) -> ProviderInfo:
        """Say what the model is, and how small."""
        embedded = "SmolLM2 135M (embedded, for first runs, examples and tests)"
        return ProviderInfo(
            id=self.name,
            display_name=embedded
            if self._config.model_path is None
            else f"{self._model} (a local GGUF file)",
            capabilities=("streaming", "tools", "json_mode"),
            media=(TEXT,),
            defaults={
                "model": self._model,
                "context_window": self._config.window,
                "max_output_tokens": self._config.max_output_tokens,
                "temperature": self._config.temperature,
            },
        )

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Stream one answer; while there is nothing to say for seconds, empty deltas are signs of life.

        Raises:
            LLMError: the request cannot be answered, the weights cannot be fetched, or the server failed.
        """
        try:
            async with aclosing(self._answer(request)) as items:
                async for item in items:
                    yield item
        except LLMError as error:
            # what raised it may know better
            error.provider = error.provider or self.name
            error.model = error.model or self._model
            raise

    async def aclose(self) -> None:
        """End the model's process; a few seconds at most, whatever it is doing."""
        await self._engine.aclose()

    async def _answer(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        self._check(request)
        limits = MediaLimits(
            model=self._model, taken=frozenset({TEXT}), degrade=self._config.degrade
        )
        shown = limits.fit(request.messages)
        request = attrs.evolve(request, messages=shown.messages)
        conversation = RequestParts.of(request)
        choice = choose(request, conversation, self._config.tool_gate, shown.losses)
        ruler: Ruler | None = None
        async with aclosing(self._engine.ready()) as steps:
            async for step in steps:
                if isinstance(step, StillWaiting):
                    yield TextDelta(text="")
                else:
                    ruler = Ruler(step.wire.tokenize)
        assert ruler is not None
        if choice.tools:
            question = await ruler.cut(
                conversation.question or "", self._config.window // 4
            )
            answer = self._call(request, choice, question)
        else:
            fitted = await fit(conversation, ruler, window=self._config.window)
            # the penalty would keep an answer from retelling what it was given
            is_free = not conversation.has_results and request.response_format is None
            answer = self._write(request, choice, fitted, is_free=is_free)
        async with aclosing(answer) as items:
            async for item in items:
                yield item

    def _check(self, request: ChatRequest) -> None:
        if request.model is not None and request.model != self._model:
            raise NotFoundError(
                f"Model {request.model!r} is not here; this provider has {self._model!r} alone"
            )
        if request.max_output_tokens is not None and request.max_output_tokens <= 0:
            raise InvalidRequestError(
                f"max_output_tokens is a number above 0; got {request.max_output_tokens}"
            )

    async def _write(
        self,
        request: ChatRequest,
        choice: RequiredTools,
        fitted: Fitted,
        *,
        is_free: bool,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Answer with text."""
        body: JSONObject = {
            "messages": fitted.messages,
            "repeat_penalty": _FREE if is_free else _FAITHFUL,
            "temperature": self._config.temperature
            if request.temperature is None
            else request.temperature,
            "max_tokens": self._most(request),
            **_optional(top_p=request.top_p, stop=request.stop and list(request.stop)),
            **_format(request.response_format),
        }
        draft = _Draft()
        losses = []
        if choice.degradation is not None:
            losses = [choice.degradation]
        async with aclosing(self._pieces(body, draft)) as pieces:
            async for piece in pieces:
                yield TextDelta(text=piece)
                # a small model that repeats itself may never find an end
                if piece and goes_round(draft.text):
                    draft.finish_reason = "stop"
                    losses.append(_CYCLE)
                    break
        yield ChatResponse(
            content=[TextBlock(text=draft.text)] if draft.text else (),
            usage=draft.usage,
            finish_reason=draft.finish_reason,
            degradation=Degradation.of_all(losses),
            metadata=self._metadata(
                tool_choice=choice.how,
                messages_left_out=fitted.left_out or None,
                result_cut=fitted.was_cut or None,
            ),
        )

    async def _call(
        self, request: ChatRequest, choice: RequiredTools, question: str
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Answer with a tool call: its name first, unless there is one tool only, then its arguments."""
        tools = {tool.name: tool for tool in choice.tools}
        named, filled = _Draft(), _Draft()
        # each question costs time, and to this one there is one answer only
        if len(tools) == 1:
            named.text = choice.tools[0].name
        else:
            async with aclosing(
                self._pieces(ask_for_name(question, choice.tools), named)
            ) as pieces:
                async for piece in pieces:
                    # the name is not shown before it is whole, but a long wait needs
                    # signs of life
                    if not piece:
                        yield TextDelta(text="")
        call_id = f"call_{secrets.token_hex(8)}"
        if (tool := tools.get(named.text)) is not None:
            body = ask_for_arguments(question, tool, max_tokens=self._most(request))
            async with aclosing(self._pieces(body, filled)) as pieces:
                async for piece in pieces:
                    yield ToolCallDelta(id=call_id, name=tool.name, arguments=piece)
        # arguments that were cut off could be valid JSON, and mean something else
        response = _CUT_OFF
        if filled.finish_reason == "stop":
            response = _called(call_id, named.text, filled.text)
        usages = [usage for usage in (named.usage, filled.usage) if usage is not None]
        yield attrs.evolve(
            response,
            usage=sum(usages[1:], usages[0]) if usages else None,
            degradation=choice.degradation,
            metadata=self._metadata(tool_choice=choice.how),
        )

    async def _pieces(
        self, body: JSONObject, draft: _Draft
    ) -> AsyncGenerator[str, None]:
        """Stream an answer into the draft and yield its pieces; empty ones are signs of life."""
        # HTTP is first imported when the server starts.
        from amplifier_module_provider_local.wire import AnswerEnd, Piece

        async with aclosing(self._engine.answer(body)) as items:
            async for item in items:
                match item:
                    case Piece(text=text):
                        draft.text += text
                        yield text
                    case AnswerEnd():
                        draft.finish_reason = item.finish_reason
                        draft.usage = item.usage
                    case _:
                        yield ""

    def _most(self, request: ChatRequest) -> int:
        return request.max_output_tokens or self._config.max_output_tokens

    def _metadata(self, **facts: JSONValue) -> JSONObject:
        return {"model": self._model, **_optional(**facts)}


@attrs.define(eq=False)
class _Draft:
    """An answer as it forms."""

    text: str = ""
    finish_reason: str = "error"
    usage: Usage | None = None


_CUT_OFF: Final = ChatResponse(finish_reason="length")
"""A call that the limit of tokens cut off: there is nothing in it that could run."""


def _called(call_id: str, name: str, text: str) -> ChatResponse:
    read = read_arguments(text)
    call = ToolCall(
        id=call_id,
        name=name,
        arguments=read.values,
        raw_arguments=text,
        problem=read.problem,
    )
    return ChatResponse(
        content=[ToolCallBlock(id=call_id, name=name, input=read.values)]
        if read.problem is None
        else (),
        tool_calls=[call],
        finish_reason="tool_calls",
    )


def _format(wanted: ResponseFormat | None) -> JSONObject:
    match wanted:
        case None | {"type": "text"}:
            return {}
        case {"type": "json"}:
            return {"response_format": {"type": "json_object"}}
        case {"type": "json_schema", "schema": Mapping() as schema}:
            return {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": schema},
                }
            }
        case _:
            raise InvalidRequestError(
                f"response_format is of type 'text', 'json', or 'json_schema' with its 'schema'; got {dict(wanted)!r}"
            )


def _optional(**values: JSONValue) -> JSONObject:
    """Leave out what is `None`."""
    return {name: value for name, value in values.items() if value is not None}
