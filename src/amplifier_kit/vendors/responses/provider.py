"""The base class of the providers that speak the Responses API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import ClassVar, Final, get_args

import attrs

from amplifier_kit.media.support import IMAGES, PDF, TEXT
from amplifier_kit.vendors.provider import VendorProvider
from amplifier_kit.vendors.request import AnswerReader, Outgoing
from amplifier_kit.vendors.responses.answers import INCOMPLETE_REASON, RESPONSE_ID
from amplifier_kit.vendors.responses.config import Effort, ResponsesConfig
from amplifier_kit.vendors.responses.continuation import (
    can_go_on,
    continued,
    joined,
    moved,
)
from amplifier_kit.vendors.responses.models import ModelFacts, facts_of
from amplifier_kit.vendors.responses.names import original_names
from amplifier_kit.vendors.responses.reader import ResponsesReader
from amplifier_kit.vendors.responses.refusals import (
    ChainBrokenError,
    ReasoningRefusedError,
    refusal_of,
)
from amplifier_kit.vendors.responses.request import (
    FULL_HISTORY,
    WITHOUT_REASONING,
    chain,
    write_request,
)
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ConfigField,
    ModelInfo,
    ProviderInfo,
)
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ContextLengthError, InvalidRequestError, LLMError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta

__all__ = ["INCOMPLETE_CONTINUATION", "ResponsesProvider"]

INCOMPLETE_CONTINUATION: Final = "provider:incomplete_continuation"
"""The event before an answer that was cut is continued: which response, why it was cut, how often so far."""

_USUAL_WINDOW: Final = 400_000
"""Tokens of context in which no prompt costs more than another."""

_CAPABILITIES: Final = ("streaming", "tools", "json_mode", "vision")


class ResponsesProvider(VendorProvider):
    """Answers through the Responses API; a vendor's class adds its address, its credentials and its models.

    Attributes:
        title: the vendor's name for people.
    """

    title: ClassVar[str]
    protocol_media: ClassVar[tuple[str, ...]] = (*IMAGES, PDF, TEXT)

    def __init__(self, config: ResponsesConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        self._options: Final = config
        coordinator.register_contributor(
            "observability.events", self.name, lambda: [INCOMPLETE_CONTINUATION]
        )

    def facts(self, model: str) -> ModelFacts:
        """Return what is known of a model, as the configuration would have it."""
        facts = facts_of(model)
        window = self._options.context_window
        if window is None:
            is_whole = self._options.enable_long_context or not facts.is_long
            window = facts.context_window
            if not is_whole:
                window = min(facts.context_window, _USUAL_WINDOW)
        return attrs.evolve(facts, context_window=window)

    def described(self, model: str) -> ModelInfo:
        """Return what is known of a model as others read it."""
        facts = self.facts(model)
        return ModelInfo(
            id=model,
            display_name=model,
            context_window=facts.context_window,
            max_output_tokens=min(facts.max_output_tokens, facts.context_window),
            capabilities=(*_CAPABILITIES, "reasoning")
            if facts.is_reasoning
            else _CAPABILITIES,
        )

    def get_info(self) -> ProviderInfo:
        """Say what the provider is, with its model and what fits into the model's context."""
        info = attrs.evolve(
            super().get_info(), display_name=self.title, capabilities=_CAPABILITIES
        )
        model = info.defaults.get("model")
        if not isinstance(model, str):
            return info
        described = self.described(model)
        return attrs.evolve(
            info,
            capabilities=described.capabilities,
            defaults={
                "model": model,
                "context_window": described.context_window,
                "max_output_tokens": self.config.max_tokens
                or described.max_output_tokens,
            },
        )

    def config_fields(self) -> tuple[ConfigField, ...]:
        """Return what a person is asked for: what every vendor needs, and how much the model reasons."""
        effort = ConfigField(
            id="reasoning_effort",
            display_name="Reasoning effort",
            prompt="How much the model reasons before it answers",
            field_type="choice",
            choices=get_args(Effort),
            required=False,
            requires_model=True,
        )
        return (*super().config_fields(), effort)

    def wire_model(self, model: str) -> str:
        """Return the name under which the vendor knows a model."""
        return model

    def write(self, request: ChatRequest, model: str) -> Outgoing:
        """Write one request.

        Raises:
            InvalidRequestError: a part of the request is none that can be written.
        """
        return write_request(
            request, self.wire_model(model), self.facts(model), self._options
        )

    def reader(self, request: ChatRequest, model: str) -> AnswerReader:  # noqa: ARG002  # all models answer alike
        """Return the reader of one answer."""
        return ResponsesReader(original_names(request.tools or ()))

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
        """Return the error for an answer that is none, by the API's codes."""
        return refusal_of(status, headers, body)

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Stream one answer; one that the model's own limit cut is continued.

        Raises:
            LLMError: the vendor refused or broke off. Where it does so while an answer is continued, the answer
                stays the cut one that it was.
        """
        parts: list[ChatResponse] = []
        while True:
            offset = sum(len(part.content) for part in parts)
            try:
                async with aclosing(self._answered(continued(request, parts))) as items:
                    async for item in items:
                        if isinstance(item, ChatResponse):
                            parts.append(item)
                        else:
                            yield moved(item, offset)
            except LLMError:
                # the first part failed, so there is nothing to show instead
                if not parts:
                    raise
                break
            if len(parts) > self._options.max_continuations or not can_go_on(
                request, parts[-1]
            ):
                break
            await self._announce(request, parts)
        yield joined(parts)

    async def _answered(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Stream one answer; when the vendor cannot use what it is sent of earlier ones, ask again without."""
        while True:
            has_shown = False
            try:
                async with aclosing(super().deltas(request)) as items:
                    async for item in items:
                        # all but a sign of life
                        if not isinstance(item, TextDelta) or item.text:
                            has_shown = True
                        yield item
            except LLMError as error:
                simpler = None
                if not has_shown:
                    simpler = self._simpler(request, error)
                if simpler is None:
                    raise
                request = simpler
            else:
                return

    def _simpler(self, request: ChatRequest, error: LLMError) -> ChatRequest | None:
        """Return the request without what the error may be due to, or `None` when that is nothing."""
        if isinstance(error, ReasoningRefusedError) and not request.extras.get(
            WITHOUT_REASONING
        ):
            return _marked(request, WITHOUT_REASONING)
        # The stored answer may be gone, have a call open that was never run here, or be too long by now.
        # only these may be due to what was sent of earlier answers; others would
        # fail again
        is_due = isinstance(
            error, (ChainBrokenError, ContextLengthError, InvalidRequestError)
        )
        if is_due and chain(request, self._options) is not None:
            return _marked(request, FULL_HISTORY)
        return None

    async def _announce(
        self, request: ChatRequest, parts: Sequence[ChatResponse]
    ) -> None:
        facts = parts[-1].metadata or {}
        data: JSONObject = {
            "provider": self.mounted_name,
            "model": self.model_of(request),
            "response_id": facts.get(RESPONSE_ID),
            "reason": facts.get(INCOMPLETE_REASON),
            "continuation_number": len(parts),
            "max_continuations": self._options.max_continuations,
        }
        await self.coordinator.hooks.emit(INCOMPLETE_CONTINUATION, data)


def _marked(request: ChatRequest, mark: str) -> ChatRequest:
    marks: Mapping[str, JSONValue] = {**request.extras, mark: True}
    return attrs.evolve(request, extras=marks)
