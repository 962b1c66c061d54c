"""The provider calls that a loop written by hand makes itself, by the providers that it received.

Each owes what any provider call owes: budgets, deadlines, the journal, the choice that a parent made for a child, and
its events once, whether or not the loop announces them as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, Protocol, cast

import anyio
import attrs

from amplifier.kernel.handwritten.announcements import Announcements
from amplifier.kernel.spans import current_span
from amplifier.kernel.turn.answers import late_error
from amplifier.kernel.turn.decisions import TurnDecisions
from amplifier.kernel.turn.overlay import with_injections
from amplifier.kernel.turn.provider_calls import (
    AROUND_MODEL,
    ProviderCall,
    ProviderCaller,
)
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.errors import LLMError
from amplifier_sdk.events import PROVIDER_REQUEST, PROVIDER_RESPONSE
from amplifier_sdk.history import typed
from amplifier_sdk.loops.notices import LAST_ANSWER
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.middleware import ModelCall
from amplifier_sdk.results import ContextInjection

if TYPE_CHECKING:
    from amplifier_sdk.contracts import ContextManager, Provider, StreamingProvider
    from amplifier_sdk.streaming import Delta

__all__ = ["ReceivedProviderCaller"]

_NO_REQUEST: Final = ChatRequest(messages=())
"""What stands for a request that is none of ours: the provider gets what the loop gave."""


class _AnyProvider(Protocol):
    """A provider as a loop uses it that knows what else it takes."""

    async def complete(self, *request: object, **options: object) -> object: ...
    def stream(
        self, *request: object, **options: object
    ) -> AbstractAsyncContextManager[AsyncIterator[Delta | ChatResponse]]: ...


@attrs.frozen(eq=False)
class _View:
    """The messages of a request, asked for as those of a context are."""

    messages: Sequence[Message]

    async def get_messages_for_request(self, **_: object) -> list[MessageDict]:
        """Return the messages as handlers read them."""
        return [message.to_dict() for message in self.messages]


@attrs.frozen(eq=False, repr=False)
class ReceivedProviderCaller(ProviderCaller):
    """Runs the provider calls that a loop makes by the providers that it received."""

    announcements: Announcements = attrs.field(factory=Announcements)

    async def complete_received(
        self,
        provider: Provider,
        name: str,
        given: Sequence[object],
        options: Mapping[str, object],
    ) -> object:
        """Run one provider call.

        Args:
            provider: whom the loop asks.
            name: what it is mounted as.
            given: what the loop passed to `complete`: a request, or what else the provider takes.
            options: what it passed by name.

        Raises:
            LLMError: a handler denied the request, or the provider failed.
            LLMTimeoutError: a deadline passed.
            TurnCancelled: the turn was asked to stop.
            BudgetExceededError: the turn's last answer was given already.
        """
        recorded = self._recorded_received(name)
        if recorded is not None:
            return recorded
        call = self._begin_received(provider, name, given)
        token = current_span.set(call.span)
        try:
            try:
                request = await self._decided_request(call, given)
                self._reserve(call, getattr(request[0], "timeout", None))
                call.foreign.seconds = call.total
                answer: object = await call.foreign.run(
                    self._asking_received(call, request, options)
                )
                if call.foreign.cancelled_caught:
                    raise call.late_error
                return await self._end_received(call, answer)
            except BaseException as error:
                await self._failed_received(call, error)
                raise
        finally:
            current_span.reset(token)

    def _asking_received(
        self,
        call: ProviderCall,
        request: Sequence[object],
        options: Mapping[str, object],
    ) -> Awaitable[object]:
        """Return the call of the provider, through the session's middleware."""
        inner = cast("_AnyProvider", call.provider)
        asked = request[0] if request else None
        around = self.services.hooks.middleware(AROUND_MODEL)
        if around is None:
            return inner.complete(*request, **options)
        made = ModelCall(
            session_id=self.services.session_id,
            provider=call.name,
            iteration=call.iteration,
            request=asked if isinstance(asked, ChatRequest) else _shown_request(asked),
        )

        def ask(given: ModelCall) -> Awaitable[object]:
            if given.request is made.request:
                return inner.complete(*request, **options)
            return inner.complete(given.request, *request[1:], **options)

        return around(made, ask)

    @asynccontextmanager
    async def stream_received(
        self,
        provider: StreamingProvider,
        name: str,
        given: Sequence[object],
        options: Mapping[str, object],
    ) -> AsyncIterator[AsyncIterator[Delta | ChatResponse]]:
        """Open one answer, under the deadlines of any; see `complete_received`."""
        recorded = self._recorded_received(name)
        if recorded is not None:
            yield _only(recorded)
            return
        call = self._begin_received(provider, name, given)
        token = current_span.set(call.span)
        scope = call.foreign.scope
        assert scope is not None
        try:
            try:
                request = await self._decided_request(call, given)
                self._reserve(call, getattr(request[0], "timeout", None))
                inner = cast("_AnyProvider", call.provider)
                with scope:
                    async with inner.stream(*request, **options) as items:
                        yield self._items(call, scope, items)
                if scope.cancelled_caught:
                    raise late_error(call.name, "passed its deadline")
                if call.held is not None and self.budget.account is not None:
                    # the loop left before the answer was complete
                    self.budget.account.release(call.held)
            except BaseException as error:
                await self._failed_received(call, error)
                raise
        finally:
            current_span.reset(token)

    async def _items(
        self,
        call: ProviderCall,
        scope: anyio.CancelScope,
        items: AsyncIterator[Delta | ChatResponse],
    ) -> AsyncIterator[Delta | ChatResponse]:
        """Pass on what comes; the time that the loop takes for it does not count."""
        idle, left = self.budget.limits.provider_idle_timeout, call.total
        asked = anyio.current_time()
        scope.deadline = asked + min(idle, left)
        async for item in items:
            scope.deadline = inf
            left -= anyio.current_time() - asked
            if isinstance(item, ChatResponse):
                yield cast("ChatResponse", await self._end_received(call, item))
                return
            waiting = self._deliver(None, item)
            if waiting is not None:
                await waiting
            yield item
            asked = anyio.current_time()
            scope.deadline = asked + min(idle, left)

    def _recorded_received(self, name: str) -> ChatResponse | None:
        """Return the next answer that a turn which is continued has already, noted as one that was reported."""
        response = self.recorded_answer(self._next_iteration)
        if response is not None:
            self.announcements.take_request(name)
            self.announcements.note_response(name, response, ())
            self.announcements.expect(response.tool_calls or ())
        return response

    @property
    def _next_iteration(self) -> int:
        return 0 if self.log.iteration is None else self.log.iteration + 1

    def _begin_received(
        self, provider: Provider, name: str, given: Sequence[object]
    ) -> ProviderCall:
        """Choose whom the call asks, and count it."""
        request = given[0] if given else None
        if not isinstance(request, ChatRequest):
            request = _NO_REQUEST
        call = self._begin(
            provider,
            partial(_with_messages, request),
            name,
            request.model,
            self._next_iteration,
            max_reached=False,
        )
        # such a loop announces the blocks of an answer itself, if at all
        call.blocks = None
        return call

    async def _decided_request(
        self, call: ProviderCall, given: Sequence[object]
    ) -> Sequence[object]:
        """Return what the provider is given, after handlers decided on it: here, or where the loop announced it.

        Raises:
            LLMError: it was denied.
        """
        announced = self.announcements.take_request(call.name)
        if announced is not None and announced.denied:
            raise LLMError(
                f"The request was denied by {announced.decided_by}: {announced.reason}",
                provider=call.name,
            )
        request = given[0] if given else None
        if not isinstance(request, ChatRequest):
            if announced is None and self.services.hooks.has_handlers(PROVIDER_REQUEST):
                await self.announce_request(call, cast("ContextManager", _View(())))
            return given
        messages = request.messages
        injections: list[ContextInjection] = []
        if announced is None and self.services.hooks.has_handlers(PROVIDER_REQUEST):
            # What waits for a request already was shown to the loop, which adds it
            # itself; here only what handlers add to this one.
            own = TurnDecisions(
                self.decisions.processor, injections, self.decisions.injected
            )
            view = cast("ContextManager", _View(messages))
            left = await attrs.evolve(self, decisions=own).announce_request(call, view)
            if left is not None:
                messages = typed(left)
        if call.max_reached:
            injections.append(ContextInjection(content=LAST_ANSWER))
        if injections:
            messages = with_injections(messages, injections)
        return [call.request(messages=messages), *given[1:]]

    async def _end_received(self, call: ProviderCall, answer: object) -> object:
        """Pay for an answer, report it, and note it for a loop that reports it too."""
        if not isinstance(answer, ChatResponse):
            # a value of the loop's own provider, which says nothing of what it cost
            self.budget.spending.add_usage(None)
            if call.held is not None and self.budget.account is not None:
                self.budget.account.settle(call.held, None, call.name)
                call.held = None
            if call.reached is not None:
                self.budget.end_last_answer()
            return answer
        response = self._settle(call, answer)
        services = self.services
        if services.hooks.has_handlers(PROVIDER_RESPONSE):
            decided = await self._announce_response(call, response)
            self.announcements.note_response(call.name, response, decided.decisions)
        if self.stream is not None and response.usage is not None:
            await self.stream.send(self._usage(call, response.usage))
        if call.reached is not None:
            response = self._end_turn(response)
        if services.journal is not None:
            await services.journal.append(self._record(response))
        self.announcements.expect(response.tool_calls or ())
        return response

    async def _failed_received(self, call: ProviderCall, error: BaseException) -> None:
        """End what was announced, and note it for a loop that reports the failure too."""
        self.announcements.note_failure(call.name)
        await self._failed(call, error)


async def _only(response: ChatResponse) -> AsyncIterator[Delta | ChatResponse]:
    yield response


def _with_messages(request: ChatRequest, *, messages: Sequence[Message]) -> ChatRequest:
    return attrs.evolve(request, messages=messages)


def _shown_request(asked: object) -> ChatRequest:
    """Show what a loop asks, where it is no request of ours; what cannot be read of it is not shown."""
    if not isinstance(asked, Sequence) or isinstance(asked, str):
        return _NO_REQUEST
    try:
        return ChatRequest(
            messages=[
                each if isinstance(each, Message) else Message.from_dict(each)
                for each in asked
            ]
        )
    except (TypeError, ValueError, AttributeError):
        return _NO_REQUEST
