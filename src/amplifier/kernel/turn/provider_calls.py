"""The one provider call: events, injections, deadlines, the journal, the account, the stream."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

import anyio
import attrs

from amplifier.kernel.foreign import ForeignCall
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier.kernel.turn.answers import StreamReader, answer_of, late_error
from amplifier.kernel.turn.blocks import BLOCK_EVENTS, BlockEvents
from amplifier.kernel.turn.overlay import with_injections
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.contracts import ContextManager, Provider, RequestBuilder
from amplifier_sdk.errors import LLMError, LLMTimeoutError, TurnCancelled
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
from amplifier_sdk.middleware import ModelCall, event_of
from amplifier_sdk.results import ContextInjection
from amplifier_sdk.streaming import Delta, TextDelta, UsageReported

if TYPE_CHECKING:
    from amplifier.kernel.budgets.accounts import Reached
    from amplifier.kernel.budgets.turn import TurnBudget
    from amplifier.kernel.turn.decisions import TurnDecisions
    from amplifier.kernel.turn.log import TurnLog
    from amplifier.kernel.turn.services import SessionServices
    from amplifier.kernel.turn.stream import EventSink
    from amplifier_sdk.chat import Usage
    from amplifier_sdk.results import Emission

__all__ = ["AROUND_MODEL", "ProviderCall", "ProviderCaller"]

AROUND_MODEL: Final = event_of("model")


@attrs.define(eq=False, repr=False)
class ProviderCall:
    """One provider call: whom it asks for what, and how far it is.

    `reached` is the limit that makes its answer the last one; `held` is what is reserved for it until its account is
    settled.
    """

    provider: Provider
    name: str
    model: str | None
    request: RequestBuilder
    iteration: int
    max_reached: bool
    reached: Reached | None
    span: Span
    blocks: BlockEvents | None
    foreign: ForeignCall
    reader: StreamReader | None = None
    total: float = inf
    started: float = 0.0
    held: Usage | None = None

    @property
    def late_error(self) -> LLMTimeoutError:
        """The error of the deadline that the provider passed."""
        if self.reader is not None:
            return self.reader.late_error
        return late_error(self.name, f"took longer than {self.total:g} s")


@attrs.frozen(eq=False, repr=False)
class ProviderCaller:
    """Runs the provider calls of one turn."""

    services: SessionServices
    budget: TurnBudget
    log: TurnLog
    decisions: TurnDecisions
    stream: EventSink | None = None

    async def complete(
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
        services, hooks = self.services, self.services.hooks
        call = self._begin(provider, request, name, model, iteration, max_reached)
        token = current_span.set(call.span)
        # What always waits is awaited here: a coroutine more is felt in each call, and
        # its frame is in every traceback.
        try:
            try:
                if services.decisions.waiting:
                    # Injections wait while calls are open; the next request must carry
                    # them.
                    await services.decisions.store_waiting()
                view: Sequence[MessageDict] | None = None
                if hooks.has_handlers(PROVIDER_REQUEST):
                    view = await self.announce_request(call, context)
                # Read anew: a handler may have added to the context by itself.
                if view is None:
                    view = await _view(context, call.provider)
                answer = await self._open(call, self._build(call, view))
                response = self._settle(call, answer)
                if call.blocks is not None:
                    await call.blocks.finish(response)
            # A cancellation as well: what was announced has an end, what was reserved
            # is free.
            except BaseException as error:
                await self._failed(call, error)
                raise
            if hooks.has_handlers(PROVIDER_RESPONSE):
                await self._announce_response(call, response)
            if self.stream is not None and response.usage is not None:
                await self.stream.send(self._usage(call, response.usage))
            if call.reached is not None:
                response = self._end_turn(response)
            if services.journal is not None:
                await services.journal.append(self._record(response))
            return response
        finally:
            current_span.reset(token)

    def _end_turn(self, response: ChatResponse) -> ChatResponse:
        """Return the last answer without calls: nobody would run them, and a call without a result spoils a request."""
        self.budget.end_last_answer()
        return response.without_tool_calls()

    async def complete_or_replay(
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
        """Return the answer that a turn which is continued has already, else run one provider call."""
        recorded = self.recorded_answer(iteration)
        if recorded is None:
            return await self.complete(
                provider,
                request,
                context,
                name=name,
                model=model,
                iteration=iteration,
                max_reached=max_reached,
            )
        if self.services.decisions.waiting:
            await self.services.decisions.store_waiting()
        return recorded

    def recorded_answer(self, iteration: int) -> ChatResponse | None:
        """Return the next answer that a turn which is continued has already; it was paid for and reported then."""
        replay, log = self.log.replay, self.log
        response = None if replay is None else replay.next_answer()
        if response is None:
            return None
        if self.services.cancellation.is_cancelled:
            raise TurnCancelled(log.text)
        log.begin_answer(
            iteration, Span(self.services.session_id, current_span.get(), iteration)
        )
        log.add_text(response.text)
        log.end_answer(response)
        return response

    def _begin(
        self,
        provider: Provider,
        request: RequestBuilder,
        name: str | None,
        model: str | None,
        iteration: int,
        max_reached: bool,
    ) -> ProviderCall:
        """Choose whom the call asks, and count it.

        Raises:
            TurnCancelled: the turn was asked to stop.
            BudgetExceededError: the turn's last answer was given already.
        """
        services, budget = self.services, self.budget
        if services.cancellation.is_cancelled:
            raise TurnCancelled(self.log.text)
        if services.route is not None:
            # A child's provider is its parent's choice; what its loop names does not
            # count.
            provider, name = services.route.provider, services.route.name
            model, request = services.route.of(model, request)
        name = name or provider.name
        reached = budget.begin_call()
        if reached is not None:
            budget.begin_last_answer(reached, self.log.text)
            request, max_reached = partial(_without_tools, request), True
        span = Span(services.session_id, current_span.get(), iteration)
        self.log.begin_answer(iteration, span)
        blocks: BlockEvents | None = None
        if services.hooks.has_any_handlers(BLOCK_EVENTS):
            blocks = BlockEvents(services.hooks)
        foreign = ForeignCall(
            f"Provider {name!r}",
            budget.scope_class(),
            outer=budget.scope,
            grace=budget.limits.cleanup_timeout,
        )
        return ProviderCall(
            provider,
            name,
            model,
            request,
            iteration,
            max_reached,
            reached,
            span,
            blocks,
            foreign,
        )

    async def announce_request(
        self, call: ProviderCall, context: ContextManager
    ) -> Sequence[MessageDict] | None:
        """Emit `provider:request`; what handlers inject for this one request waits in `pending`.

        Returns:
            The messages that handlers put in the place of the view; `None` where they left it.
        """
        shown = await _view(context, call.provider)
        payload: ProviderRequest = {
            "provider": call.name,
            "model": call.model,
            "iteration": call.iteration,
            "messages": shown,
        }
        if call.max_reached:
            payload["max_reached"] = True
        emission = await self.services.hooks.emit(PROVIDER_REQUEST, payload)
        if not emission.decisions:
            return None
        decided = await self.decisions.carry_out(emission, PROVIDER_REQUEST)
        if decided.denied:
            raise LLMError(
                f"The request was denied by {decided.decided_by}: {decided.reason}",
                provider=call.name,
            )
        # By identity: comparing two histories would cost more than the emission.
        left = emission.data["messages"]
        if left is shown:
            return None
        return cast("Sequence[MessageDict]", left)

    def _build(self, call: ProviderCall, view: Sequence[MessageDict]) -> ChatRequest:
        """Build the request of what the model shall read."""
        messages = typed(view)
        if self.decisions.pending or call.max_reached:
            messages = self._with_pending(messages, call.max_reached)
        asked = call.request(messages=messages)
        if asked.conversation_id is None:  # a loop's own builder left it open
            return attrs.evolve(asked, conversation_id=self.services.session_id)
        return asked

    def _open(self, call: ProviderCall, asked: ChatRequest) -> Awaitable[object]:
        """Reserve what the call may take, and return the call of the provider, which is to be awaited."""
        foreign = call.foreign
        self._reserve(call, asked.timeout)
        around = self.services.hooks.middleware(AROUND_MODEL)
        if around is None:
            return foreign.run(self._asking(call, asked))
        made = ModelCall(
            session_id=self.services.session_id,
            provider=call.name,
            iteration=call.iteration,
            request=asked,
        )
        return foreign.run(
            around(made, lambda given: self._asking(call, given.request))
        )

    def _asking(self, call: ProviderCall, asked: ChatRequest) -> Awaitable[object]:
        """Return the call of the provider, under its deadlines."""
        # A provider of the older contract does not stream, and need not say so.
        open_stream = getattr(call.provider, "stream", None)
        if open_stream is None:
            call.foreign.limit(call.total)
            return call.provider.complete(asked)
        # The reader sets the deadlines: what a slow reader of the turn takes must not
        # count against the provider.
        assert call.foreign.scope is not None
        call.reader = StreamReader(
            open_stream(asked),
            call.name,
            call.foreign.scope,
            call.total,
            self.budget.limits.provider_idle_timeout,
        )
        return call.reader.read(partial(self._deliver, call.blocks))

    def _reserve(self, call: ProviderCall, timeout: float | None) -> None:
        """Reserve what the call may take: at the last moment, since handlers of the request may wait for a person."""
        budget = self.budget
        call.total = timeout or budget.limits.provider_timeout
        call.started = perf_counter()
        if budget.account is not None:
            call.held = budget.account.hold()

    def _settle(self, call: ProviderCall, answer: object) -> ChatResponse:
        """Return the answer, which is paid for from here on.

        Raises:
            LLMTimeoutError: the provider passed a deadline.
            LLMError: what came is no answer.
        """
        if call.foreign.cancelled_caught:
            raise call.late_error
        budget = self.budget
        response = answer_of(call.provider, call.name, answer)
        budget.spending.add_usage(response.usage)
        if budget.account is not None:
            budget.account.settle(call.held, response.usage, call.name)
            call.held = None
        self.log.end_answer(response)
        return response

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

    async def _announce_response(
        self, call: ProviderCall, response: ChatResponse
    ) -> Emission:
        """Emit `provider:response`; return what is left of the decisions."""
        payload: ProviderResponse = {
            "provider": call.name,
            "model": call.model,
            "response": response,
            "usage": response.usage,
            "tool_calls": bool(response.tool_calls),
            "duration": perf_counter() - call.started,
        }
        if response.degradation is not None:
            payload["degradation"] = response.degradation
        emission = await self.services.hooks.emit(PROVIDER_RESPONSE, payload)
        if not emission.decisions:
            return emission
        return await self.decisions.carry_out(emission, PROVIDER_RESPONSE)

    def _usage(self, call: ProviderCall, usage: Usage) -> UsageReported:
        total = self.budget.spending.usage or usage
        return UsageReported(provider=call.name, usage=usage, total=total)

    def _record(self, response: ChatResponse) -> MessageWritten:
        return MessageWritten(
            turn_id=current_turn_id(),
            message=response.to_message(),
            spending=self.budget.spent_so_far,
        )

    async def _failed(self, call: ProviderCall, error: BaseException) -> None:
        """Give back what was reserved, and end what was announced, also when the call was cancelled."""
        hooks, account = self.services.hooks, self.budget.account
        if call.held is not None and account is not None:
            account.release(call.held)
        if call.blocks is None and not hooks.has_handlers(PROVIDER_ERROR):
            return
        # Cancelled code cannot await; the limit keeps a handler from holding up the end.
        with (
            anyio.CancelScope(shield=True),
            anyio.move_on_after(self.budget.limits.cleanup_timeout),
        ):
            if call.blocks is not None:
                await call.blocks.abandon()
            payload = _provider_error(call.name, call.model, error)
            await hooks.emit(PROVIDER_ERROR, payload)


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
