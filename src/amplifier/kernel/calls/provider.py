"""The one provider call: events, injections, deadlines, the journal, the account, the stream."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from time import perf_counter
from typing import Final, cast

import anyio
import attrs

from amplifier.kernel.calls.answers import ask
from amplifier.kernel.calls.blocks import BLOCK_EVENTS, BlockEvents
from amplifier.kernel.calls.injecting import injected
from amplifier.kernel.calls.state import HostState
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.contracts import ContextManager, Provider, RequestBuilder
from amplifier_sdk.errors import LLMError, TurnCancelled
from amplifier_sdk.events import (
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    ProviderError,
    ProviderRequest,
    ProviderResponse,
)
from amplifier_sdk.history import typed
from amplifier_sdk.journal import MessageWritten
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.results import ContextInjection
from amplifier_sdk.streaming import Delta, TextDelta, UsageReported

__all__ = ["ProviderCalls"]

LAST_ANSWER: Final = (
    "A limit of this turn is reached. No tool can be used any more: answer now, with what you know so far."
)


class ProviderCalls(HostState):
    """Runs provider calls."""

    __slots__ = ()

    async def complete(
        self,
        provider: Provider,
        request: RequestBuilder,
        *,
        context: ContextManager,
        name: str | None = None,
        model: str | None = None,
        iteration: int = 0,
        max_reached: bool = False,
    ) -> ChatResponse:
        """Run one provider call; see `TurnHost.complete`."""
        if self.cancellation.is_cancelled:
            raise TurnCancelled(self.text)
        if self.route is not None:
            provider, name = self.route.provider, self.route.name
            model, request = self.route.of(model, request)
        name = name or provider.name
        if (reached := self.begin_call(iteration)) is not None:
            self.begin_last_answer(reached)
            request, max_reached = partial(_without_tools, request), True
        blocks = self._begin_answer()
        token = current_span.set(Span(self.session_id, current_span.get(), iteration))
        try:
            try:
                await self.decisions.store_waiting()
                changed = None
                if self.hooks.has_handlers(PROVIDER_REQUEST):
                    view = await _view(context, provider)
                    changed = await self._announce(name, model, iteration, max_reached, view)
                messages = typed(await _view(context, provider) if changed is None else changed)
                if self.pending or max_reached:
                    messages = self._with_pending(messages, max_reached)
                started = perf_counter()
                response = await self._ask(provider, name, request(messages=messages), blocks)
            except BaseException as error:
                await self._provider_failed(name, model, error, blocks)
                raise
            if self.stream is not None or self.hooks.has_handlers(PROVIDER_RESPONSE):
                await self._provider_answered(name, model, response, perf_counter() - started)
            if reached is not None:
                response = response.without_tool_calls()
                self.end_last_answer()
            if self.journal is not None:
                message = response.to_message()
                record = MessageWritten(turn_id=current_turn_id(), message=message, spending=self.spent_so_far)
                await self.journal.append(record)
            return response
        finally:
            current_span.reset(token)

    def _begin_answer(self) -> BlockEvents | None:
        """Forget what was written of an answer that failed before anybody saw it; return what announces the next."""
        if not self.was_shown:
            del self.written[self.whole :]
        self.hide()
        return BlockEvents(self.hooks) if self.hooks.has_any_handlers(BLOCK_EVENTS) else None

    async def _announce(
        self, name: str, model: str | None, iteration: int, max_reached: bool, messages: Sequence[MessageDict]
    ) -> Sequence[MessageDict] | None:
        """Emit `provider:request`; what handlers inject for this request waits in `pending`.

        Returns:
            The messages that handlers put in the place of the view; `None` where they left it.
        """
        payload: ProviderRequest = {"provider": name, "model": model, "iteration": iteration, "messages": messages}
        if max_reached:
            payload["max_reached"] = True
        emission = await self.hooks.emit(PROVIDER_REQUEST, payload)
        if not emission.decisions:
            return None
        decided = await self.process_hook_result(emission, PROVIDER_REQUEST)
        if decided.denied:
            raise LLMError(f"The request was denied by {decided.decided_by}: {decided.reason}", provider=name)
        left = emission.data["messages"]
        return None if left is messages else cast("Sequence[MessageDict]", left)

    def _with_pending(self, messages: Sequence[Message], max_reached: bool) -> Sequence[Message]:
        """Add what waits for this one request behind the history, which stays as it is."""
        waiting = self.take_pending()
        if max_reached:
            waiting.append(ContextInjection(content=LAST_ANSWER))
        return injected(messages, waiting)

    async def _ask(
        self, provider: Provider, name: str, request: ChatRequest, blocks: BlockEvents | None
    ) -> ChatResponse:
        """Ask, and settle the account; the answer's blocks are announced to their end."""
        held = self.account.hold() if self.account is not None else None
        try:
            response = await ask(provider, name, request, self.limits, partial(self._deliver, blocks))
        except BaseException:
            if self.account is not None:
                self.account.release(held)
            raise
        self.spending.add_usage(response.usage)
        if self.account is not None:
            self.account.settle(held, response.usage, name)
        self.end_answer(response)
        if response.degradation is not None:
            self.degradations.append(response.degradation)
        if blocks is not None:
            await blocks.finish(response)
        return response

    def _deliver(self, blocks: BlockEvents | None, delta: Delta) -> Awaitable[None] | None:
        """Hand a delta to the reader of the turn and to the handlers; an empty one is a sign of life alone.

        Nothing is to be awaited where nobody hears it, or only a reader who has room for it.
        """
        if isinstance(delta, TextDelta):
            if not delta.text:
                return None
            self.written.append(delta.text)
        if self.stream is None and blocks is None:
            return None
        self.show()
        if blocks is None and self.stream is not None and self.stream.take(delta):
            return None
        return self._show(blocks, delta)

    async def _show(self, blocks: BlockEvents | None, delta: Delta) -> None:
        if self.stream is not None:
            await self.stream.send(delta)
        if blocks is not None:
            await blocks.grow(delta)

    async def _provider_answered(self, name: str, model: str | None, response: ChatResponse, duration: float) -> None:
        """Tell the handlers of an answer, and the reader of the turn what it used."""
        if self.hooks.has_handlers(PROVIDER_RESPONSE):
            await self._announce_answer(name, model, response, duration)
        usage = response.usage
        if self.stream is not None and usage is not None:
            await self.stream.send(UsageReported(provider=name, usage=usage, total=self.spending.usage or usage))

    async def _announce_answer(self, name: str, model: str | None, response: ChatResponse, duration: float) -> None:
        payload: ProviderResponse = {
            "provider": name,
            "model": model,
            "response": response,
            "usage": response.usage,
            "tool_calls": bool(response.tool_calls),
            "duration": duration,
        }
        if response.degradation is not None:
            payload["degradation"] = response.degradation
        emission = await self.hooks.emit(PROVIDER_RESPONSE, payload)
        if emission.decisions:
            await self.process_hook_result(emission, PROVIDER_RESPONSE)

    async def _provider_failed(
        self, name: str, model: str | None, error: BaseException, blocks: BlockEvents | None
    ) -> None:
        """End what was announced, also when the call was cancelled."""
        if blocks is None and not self.hooks.has_handlers(PROVIDER_ERROR):
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(self.limits.cleanup_timeout):
            if blocks is not None:
                await blocks.abandon()
            await self.hooks.emit(PROVIDER_ERROR, _provider_error(name, model, error))


def _without_tools(request: RequestBuilder, *, messages: Sequence[Message]) -> ChatRequest:
    return attrs.evolve(request(messages=messages), tools=None, tool_choice=None)


def _view(context: ContextManager, provider: Provider) -> Awaitable[Sequence[MessageDict]]:
    """Ask the context for what the model shall read; one of the older contract gives its whole history."""
    read = getattr(context, "get_messages_for_request", None)
    return context.get_messages() if read is None else read(provider=provider)


def _provider_error(name: str, model: str | None, error: BaseException) -> ProviderError:
    """Say what failed; a cancellation, of which each backend has its own, is called `cancelled`."""
    is_cancelled = not isinstance(error, Exception)
    kind, text = ("cancelled", "The request was cancelled") if is_cancelled else (type(error).__name__, str(error))
    details: dict[str, JSONValue] = {"type": kind, "message": text, "msg": text}
    retryable, status = (error.retryable, error.status_code) if isinstance(error, LLMError) else (False, None)
    return ProviderError(provider=name, model=model, error=details, retryable=retryable, status_code=status)
