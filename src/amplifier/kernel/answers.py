"""One answer of a provider: streamed where it can, under both deadlines, and fit to act on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from math import inf
from operator import is_
from random import getrandbits
from typing import TypeAlias

import anyio
import attrs

from amplifier_sdk.chat import ChatRequest, ChatResponse, ToolCall
from amplifier_sdk.content import ContentBlock, ToolCallBlock
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import LLMError, LLMTimeoutError, StreamError
from amplifier_sdk.limits import Limits
from amplifier_sdk.streaming import Delta

__all__ = ["Question"]

_Items: TypeAlias = AbstractAsyncContextManager[AsyncIterator[Delta | ChatResponse]]
_Stream: TypeAlias = Callable[[ChatRequest], _Items]


@attrs.define(eq=False)
class Question:
    """One request to one provider, and where its deltas go."""

    provider: Provider
    name: str
    limits: Limits
    deliver: Callable[[Delta], Awaitable[None]]
    _deadline: float = inf

    async def ask(self, request: ChatRequest) -> ChatResponse:
        """Return the answer, with unique call ids, and without calls unless it is complete.

        Raises:
            LLMTimeoutError: nothing came for `provider_idle_timeout`, or the whole took `provider_timeout`.
            LLMError: what came is no answer. What the provider itself raises passes unchanged.
        """
        total = request.timeout or self.limits.provider_timeout
        self._deadline = anyio.current_time() + total
        response: ChatResponse | None = None
        with anyio.CancelScope(deadline=self._deadline) as scope:
            stream: _Stream | None = getattr(self.provider, "stream", None)
            if stream is None:
                response = await self.provider.complete(request)
            else:
                response = await self._stream(stream(request), scope)
        if scope.cancelled_caught:
            idle = self.limits.provider_idle_timeout
            silent = scope.deadline < self._deadline
            problem = f"was silent for {idle:g} s" if silent else f"took longer than {total:g} s"
            raise LLMTimeoutError(f"Provider {self.name!r} {problem}", provider=self.name)
        return self._fit(response)

    async def _stream(self, stream: _Items, scope: anyio.CancelScope) -> ChatResponse:
        idle = self.limits.provider_idle_timeout
        scope.deadline = min(self._deadline, anyio.current_time() + idle)
        async with stream as items:
            async for item in items:
                if isinstance(item, ChatResponse):
                    return item
                scope.deadline = inf  # a slow reader holds the turn back, not the provider
                held = anyio.current_time()
                await self.deliver(item)
                now = anyio.current_time()
                self._deadline += now - held
                scope.deadline = min(self._deadline, now + idle)
        raise StreamError(f"Provider {self.name!r}: the stream ended before the answer was whole", provider=self.name)

    def _fit(self, response: object) -> ChatResponse:
        if not isinstance(response, ChatResponse):
            raise LLMError(
                f"Provider {self.name!r} answered with {type(response).__name__}; it must be a ChatResponse",
                provider=self.name,
            )
        calls = self.provider.parse_tool_calls(response)
        if not calls or not response.is_complete:
            bare = response.tool_calls is None and not any(map(_is_call, response.content))
            return response if bare else response.without_tool_calls()
        return _with_calls(response, calls)


def _is_call(block: ContentBlock) -> bool:
    return isinstance(block, ToolCallBlock)


def _with_calls(response: ChatResponse, calls: Sequence[ToolCall]) -> ChatResponse:
    """Give every call an id of its own: empty and repeated ones would pair with the wrong result.

    The content is made to show these calls and no others, which nobody would answer.
    """
    ids = [call.id for call in calls]
    shown = [block.id for block in response.content if isinstance(block, ToolCallBlock)]
    if all(ids) and len(set(ids)) == len(ids) and set(ids).issuperset(shown):
        return response if _same(response.tool_calls, calls) else attrs.evolve(response, tool_calls=tuple(calls))
    seen: set[str] = set()
    renamed = []
    for call in calls:
        fresh = call if call.id and call.id not in seen else attrs.evolve(call, id=f"call_{getrandbits(64):016x}")
        seen.add(fresh.id)
        renamed.append(fresh)
    return attrs.evolve(response.without_tool_calls(), tool_calls=tuple(renamed))


def _same(left: Sequence[ToolCall] | None, right: Sequence[ToolCall]) -> bool:
    return left is not None and len(left) == len(right) and all(map(is_, left, right))
