"""The events of an exchange with a vendor: `llm:request`, `llm:response`, `provider:retry`, `provider:throttle`."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from amplifier_kit.media.encoded import without_media
from amplifier_kit.vendors.headers import rate_limits, request_id
from amplifier_sdk.chat import ChatRequest, ChatResponse, Usage
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.errors import LLMError
from amplifier_sdk.events import (
    LLM_REQUEST,
    LLM_RESPONSE,
    PROVIDER_RETRY,
    PROVIDER_THROTTLE,
    LlmRequest,
    LlmResponse,
    ProviderRetry,
    ProviderThrottle,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from amplifier_kit.vendors.provider import VendorProvider
    from amplifier_kit.vendors.retries import Try

__all__ = ["ExchangeReport", "report_retry"]

_TIMEOUT: Final = 5.0
_CLOSE_TO_LIMIT: Final = 0.1


@attrs.define(eq=False, repr=False)
class ExchangeReport:
    """The events of one attempt; none is made that nobody handles."""

    provider: VendorProvider
    model: str
    keeps: bool = attrs.field(init=False)
    _started: float = attrs.field(factory=perf_counter, init=False)
    _headers: Mapping[str, str] = attrs.field(factory=dict, init=False)
    _received: list[JSONValue] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.keeps = self.provider.config.raw and self._hooks.has_handlers(LLM_RESPONSE)

    def heard(self, headers: Mapping[str, str]) -> None:
        """Take the headers of the answer."""
        self._headers = headers

    def received(self, data: str) -> None:
        """Take one event of the answer, where `keeps` says that it is wanted."""
        self._received.append(data)

    async def begin(self, request: ChatRequest, body: JSONObject) -> None:
        """Tell that the request is sent."""
        if not self._hooks.has_handlers(LLM_REQUEST):
            return
        said = LlmRequest(
            provider=self.provider.mounted_name,
            model=self.model,
            message_count=len(request.messages),
            has_system=any(message.role == "system" for message in request.messages),
            tool_count=len(request.tools or ()),
            thinking_enabled=request.reasoning_effort not in (None, "none"),
        )
        if self.provider.config.raw:
            said["raw"] = self.provider.withholder.payload(without_media(body))
        await self._hooks.emit(LLM_REQUEST, said)

    async def end(self, outcome: ChatResponse | BaseException) -> None:
        """Tell how it ended; also when it was cancelled, and then for a few seconds at most."""
        if self._hooks.has_handlers(LLM_RESPONSE):
            # shielded, since a cancelled exchange was paid for all the same, and
            # bounded, since a handler must not hold up the cancellation
            with anyio.CancelScope(shield=True), anyio.move_on_after(_TIMEOUT):
                await self._hooks.emit(LLM_RESPONSE, self._response(outcome))

    def _response(self, outcome: ChatResponse | BaseException) -> LlmResponse:
        said = LlmResponse(
            provider=self.provider.mounted_name,
            model=self.model,
            status=_status(outcome),
            duration_ms=(perf_counter() - self._started) * 1000,
        )
        if isinstance(outcome, ChatResponse):
            if outcome.usage is not None:
                said["usage"] = _usage(outcome.usage)
        elif isinstance(outcome, Exception):
            said["error"] = self.provider.withholder.text(
                f"{type(outcome).__name__}: {outcome}"
            )
        if number := request_id(self._headers):
            # `request_id` is the session's own, the same as in `llm:request`
            said["vendor_request_id"] = number
        if self.keeps:
            said["raw"] = self.provider.withholder.payload(self._received)
        return said

    async def throttle(self) -> None:
        """Tell of each limit of which less than a tenth is left; nothing waits for it."""
        if not self._hooks.has_handlers(PROVIDER_THROTTLE):
            return
        for limit in rate_limits(self._headers):
            if limit.remaining >= limit.limit * _CLOSE_TO_LIMIT:
                continue
            said = ProviderThrottle(
                provider=self.provider.mounted_name,
                model=self.model,
                reason=f"{limit.remaining} of {limit.limit} {limit.dimension} are left",
                dimension=limit.dimension,
                remaining=limit.remaining,
                limit=limit.limit,
                delay=0.0,
                ratio=limit.remaining / limit.limit,
            )
            if limit.reset is not None:
                said["reset_timestamp"] = limit.reset
            await self._hooks.emit(PROVIDER_THROTTLE, said)

    @property
    def _hooks(self) -> Hooks:
        return self.provider.coordinator.hooks


def _status(outcome: ChatResponse | BaseException) -> str:
    if isinstance(outcome, ChatResponse):
        return "ok"
    if isinstance(outcome, Exception):
        return "error"
    return "cancelled"


def _usage(usage: Usage) -> JSONObject:
    counts = {
        name: getattr(usage, name)
        for name in attrs.fields_dict(Usage)
        if name not in ("extras", "cost_usd")
    }
    said: JSONObject = {
        name: count for name, count in counts.items() if count is not None
    }
    if usage.cost_usd is not None:
        said["cost_usd"] = str(usage.cost_usd)
    return said


async def report_retry(
    provider: VendorProvider, attempt: Try, error: LLMError, model: str | None
) -> None:
    """Tell that a request is sent again after a wait; the event's `attempt` counts the failed ones from 1."""
    hooks = provider.coordinator.hooks
    if hooks.has_handlers(PROVIDER_RETRY):
        said = ProviderRetry(
            provider=provider.mounted_name,
            model=model,
            attempt=attempt.number - 1,
            max_retries=provider.config.max_retries,
            delay=attempt.delay,
            retry_after=error.retry_after,
            error_type=type(error).__name__,
            error_message=str(error),
            status_code=error.status_code,
        )
        await hooks.emit(PROVIDER_RETRY, said)
