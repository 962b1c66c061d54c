"""The one provider call: events, injections, deadlines, the journal, the account, the stream."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, cast

import anyio
import attrs

from amplifier.kernel.foreign import ForeignCall
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier.kernel.turn.answers import StreamReader, answer_of, late_error
from amplifier.kernel.turn.blocks import BLOCK_EVENTS, BlockEvents
from amplifier.kernel.turn.overlay import with_injections
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.contracts import ContextManager, Provider, RequestBuilder
from amplifier_sdk.errors import LLMError, TurnCancelled
from amplifier_sdk.events import (
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    ProviderErrorPayload,
    ProviderRequest,
    ProviderResponse,
)
from amplifier_sdk.history import typed
from amplifier_sdk.journal import MessageWritten
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops.notices import LAST_ANSWER
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.results import ContextInjection, Emission
from amplifier_sdk.streaming import Delta, TextDelta, UsageReported

if TYPE_CHECKING:
    from amplifier.kernel.budgets.turn import TurnBudget
    from amplifier.kernel.turn.decisions import TurnDecisions
    from amplifier.kernel.turn.log import TurnLog
    from amplifier.kernel.turn.services import SessionServices
    from amplifier.kernel.turn.stream import EventSink
    from amplifier_sdk.chat import Usage

__all__ = ["ProviderCaller"]


@attrs.frozen(eq=False, repr=False)
class ProviderCaller:
    """Runs the provider calls of one turn."""

    services: SessionServices
    budget: TurnBudget
    log: TurnLog
    decisions: TurnDecisions
    stream: EventSink | None = None

    async def complete(  # noqa: C901  # the one provider call, step by step: each coroutine more is felt
        self,
        provider: Provider,
        request: RequestBuilder,
        context: ContextManager,
        *,
        name: str | None,
        model: str | None,
        iteration: int,
        max_reached: bool,
    ) -> ChatResponse:
        """Run one provider call; see `TurnHost.complete`."""
        services, budget, hooks = self.services, self.budget, self.services.hooks
        if services.cancellation.is_cancelled:
            raise TurnCancelled(self.log.text)
        if services.route is not None:
            # A child's provider is its parent's choice; what its loop names does not
            # count.
            provider, name = services.route.provider, services.route.name
            model, request = services.route.of(model, request)
        name = name or provider.name
        # The last answer is one more call than the limit allows, and it may call no
        # tool.
        reached = budget.begin_call()
        if reached is not None:
            budget.begin_last_answer(reached, self.log.text)
            request, max_reached = partial(_without_tools, request), True
        span = Span(services.session_id, current_span.get(), iteration)
        self.log.begin_answer(iteration, span)
        if hooks.has_any_handlers(BLOCK_EVENTS):
            blocks = BlockEvents(hooks)
        else:
            blocks = None
        # Until it is settled, so that whatever fails in between gives it back.
        held: Usage | None = None
        token = current_span.set(span)
        try:
            try:
                if services.decisions.waiting:
                    # Injections wait while calls are open; the next request must carry
                    # them.
                    await services.decisions.store_waiting()
                view: Sequence[MessageDict] | None = None
                if hooks.has_handlers(PROVIDER_REQUEST):
                    shown = await _view(context, provider)
                    payload: ProviderRequest = {
                        "provider": name,
                        "model": model,
                        "iteration": iteration,
                        "messages": shown,
                    }
                    if max_reached:
                        payload["max_reached"] = True
                    emission = await hooks.emit(PROVIDER_REQUEST, payload)
                    if emission.decisions:
                        view = await self._request_decided(emission, shown, name)
                # Read anew: a handler may have added to the context by itself.
                if view is None:
                    view = await _view(context, provider)
                messages = typed(view)
                if self.decisions.pending or max_reached:
                    messages = self._with_pending(messages, max_reached)
                asked = request(messages=messages)
                if asked.conversation_id is None:  # a loop's own builder left it open
                    session_id = services.session_id
                    asked = attrs.evolve(asked, conversation_id=session_id)
                total = asked.timeout or budget.limits.provider_timeout
                started = perf_counter()
                if budget.account is not None:
                    # Reserved at the last moment: handlers of the request may wait for
                    # a person.
                    held = budget.account.hold()
                # A provider of the older contract does not stream, and need not say so.
                open_stream = getattr(provider, "stream", None)
                scope = budget.scope_class()
                foreign = self._foreign(name, scope, total)
                if open_stream is not None:
                    reader = StreamReader(
                        open_stream(asked), name, scope, total, budget.limits
                    )
                    # What a slow reader of the turn takes must not count against the
                    # provider.
                    foreign.seconds = inf  # the reader sets the deadlines
                    answer = await foreign.run(
                        reader.read(partial(self._deliver, blocks))
                    )
                    if foreign.cancelled_caught:
                        raise reader.late_error
                else:
                    answer = await foreign.run(provider.complete(asked))
                    if foreign.cancelled_caught:
                        raise late_error(name, f"took longer than {total:g} s")
                response = answer_of(provider, name, answer)
                budget.spending.add_usage(response.usage)
                if budget.account is not None:
                    budget.account.settle(held, response.usage, name)
                    held = None
                self.log.end_answer(response)
                if blocks is not None:
                    await blocks.finish(response)
            # A cancellation as well: what was announced has an end, what was reserved
            # is free.
            except BaseException as error:
                if held is not None and budget.account is not None:
                    budget.account.release(held)
                await self._failed(name, model, error, blocks)
                raise
            if hooks.has_handlers(PROVIDER_RESPONSE):
                await self._announce(name, model, response, perf_counter() - started)
            if self.stream is not None and response.usage is not None:
                spent = budget.spending.usage or response.usage
                await self.stream.send(
                    UsageReported(provider=name, usage=response.usage, total=spent)
                )
            if reached is not None:
                # Nobody would run them, and a call without a result spoils the next
                # request.
                response = response.without_tool_calls()
                budget.end_last_answer()
            if services.journal is not None:
                message, spending = response.to_message(), budget.spent_so_far
                record = MessageWritten(
                    turn_id=current_turn_id(), message=message, spending=spending
                )
                await services.journal.append(record)
            return response
        finally:
            current_span.reset(token)

    def _foreign(
        self, name: str, scope: anyio.CancelScope, seconds: float
    ) -> ForeignCall:
        budget = self.budget
        return ForeignCall(
            f"Provider {name!r}",
            scope,
            seconds,
            outer=budget.scope,
            grace=budget.limits.cleanup_timeout,
        )

    async def _request_decided(
        self, emission: Emission, messages: Sequence[MessageDict], name: str
    ) -> Sequence[MessageDict] | None:
        """Carry out what handlers of `provider:request` decided; what they inject for it waits in `pending`.

        Returns:
            The messages that handlers put in the place of the view; `None` where they left it.
        """
        decided = await self.decisions.carry_out(emission, PROVIDER_REQUEST)
        if decided.denied:
            raise LLMError(
                f"The request was denied by {decided.decided_by}: {decided.reason}",
                provider=name,
            )
        # By identity: comparing two histories would cost more than the emission.
        left = emission.data["messages"]
        if left is messages:
            return None
        return cast("Sequence[MessageDict]", left)

    def _with_pending(
        self, messages: Sequence[Message], max_reached: bool
    ) -> Sequence[Message]:
        """Add what waits for this one request behind the history, which stays as it is."""
        # Behind what is there, so that a vendor's cache of the history stays valid.
        waiting = self.decisions.take_pending()
        if max_reached:
            waiting.append(ContextInjection(content=LAST_ANSWER))
        return with_injections(messages, waiting)

    def _deliver(
        self, blocks: BlockEvents | None, delta: Delta
    ) -> Awaitable[object] | None:
        """Hand a delta to the reader of the turn and to the handlers; an empty one is a sign of life alone.

        Nothing is to be awaited where nobody hears it, or only a reader who has room for it.
        """
        if isinstance(delta, TextDelta):
            if not delta.text:
                return None
            self.log.add_text(delta.text)
        stream = self.stream
        if blocks is not None:
            self.log.was_shown = True
            return self._show(blocks, delta)
        if stream is None:
            return None
        self.log.was_shown = True
        return stream.offer(delta)

    async def _show(self, blocks: BlockEvents, delta: Delta) -> None:
        if self.stream is not None:
            await self.stream.send(delta)
        await blocks.grow(delta)

    async def _announce(
        self, name: str, model: str | None, response: ChatResponse, duration: float
    ) -> None:
        """Emit `provider:response`."""
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
        emission = await self.services.hooks.emit(PROVIDER_RESPONSE, payload)
        if emission.decisions:
            await self.decisions.carry_out(emission, PROVIDER_RESPONSE)

    async def _failed(
        self,
        name: str,
        model: str | None,
        error: BaseException,
        blocks: BlockEvents | None,
    ) -> None:
        """End what was announced, also when the call was cancelled."""
        hooks = self.services.hooks
        if blocks is None and not hooks.has_handlers(PROVIDER_ERROR):
            return
        with (
            # Cancelled code cannot await; the limit keeps a handler from holding up the
            # end.
            anyio.CancelScope(shield=True),
            anyio.move_on_after(self.budget.limits.cleanup_timeout),
        ):
            if blocks is not None:
                await blocks.abandon()
            await hooks.emit(PROVIDER_ERROR, _provider_error(name, model, error))


def _without_tools(
    request: RequestBuilder, *, messages: Sequence[Message]
) -> ChatRequest:
    return attrs.evolve(request(messages=messages), tools=None, tool_choice=None)


def _view(
    context: ContextManager, provider: Provider
) -> Awaitable[Sequence[MessageDict]]:
    """Ask the context for what the model shall read; one of the older contract gives its whole history."""
    read = getattr(context, "get_messages_for_request", None)
    return context.get_messages() if read is None else read(provider=provider)


def _provider_error(
    name: str, model: str | None, error: BaseException
) -> ProviderErrorPayload:
    """Say what failed; a cancellation, of which each backend has its own, is called `cancelled`."""
    is_cancelled = not isinstance(error, Exception)
    if is_cancelled:
        kind, text = ("cancelled", "The request was cancelled")
    else:
        kind, text = (type(error).__name__, str(error))
    details: dict[str, JSONValue] = {"type": kind, "message": text, "msg": text}
    if isinstance(error, LLMError):
        retryable, status = (error.retryable, error.status_code)
    else:
        retryable, status = (False, None)
    return ProviderErrorPayload(
        provider=name,
        model=model,
        error=details,
        retryable=retryable,
        status_code=status,
    )
