"""One answer of a provider: read from its stream under both deadlines, and fit to act on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from math import inf
from operator import is_
from random import getrandbits
from typing import Final, TypeAlias

import anyio
import attrs

from amplifier_sdk.chat import ChatResponse, ToolCall
from amplifier_sdk.content import ContentBlock, ToolCallBlock
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import LLMError, LLMTimeoutError, StreamError
from amplifier_sdk.streaming import Delta

__all__ = ["StreamReader", "answer_of", "late_error"]

_Items: TypeAlias = AbstractAsyncContextManager[AsyncIterator[Delta | ChatResponse]]
_Deliver: TypeAlias = Callable[[Delta], Awaitable[object] | None]

ARMED_ANEW: Final = 0.01
"""The part of the idle deadline that has to pass before it is set anew: setting it costs as much as a delta."""


@attrs.define(eq=False, repr=False)
class StreamReader:
    """Reads a stream to its `ChatResponse` under two deadlines.

    The time in which a slow reader holds it back does not count.

    Args:
        stream: the provider's.
        name: what errors call the provider.
        scope: the one that is entered around `read`; it gets the deadlines.
        total: seconds for all of it.
        idle: seconds that the provider may be silent.
    """

    _stream: _Items
    _name: str
    _scope: anyio.CancelScope
    _total: float
    _idle: float
    _end: float = attrs.field(default=inf, init=False)

    async def read(self, deliver: _Deliver) -> ChatResponse:
        """Read to the end.

        Args:
            deliver: gets each delta; what it returns is awaited while no deadline runs.

        Raises:
            StreamError: the stream ended without an answer.
        """
        scope, idle = self._scope, self._idle
        now = armed = anyio.current_time()
        self._end = now + self._total
        scope.deadline = min(self._end, now + idle)
        async with self._stream as items:
            async for item in items:
                if isinstance(item, ChatResponse):
                    return item
                waiting = deliver(item)
                now = anyio.current_time()
                if waiting is not None:
                    scope.deadline, held = inf, now
                    await waiting
                    now = anyio.current_time()
                    # the time for which the reader of the turn held the stream back
                    self._end += now - held
                # most deltas come close together; the deadline is at most 1 % too early
                elif now < armed + idle * ARMED_ANEW:
                    continue
                armed, scope.deadline = now, min(self._end, now + idle)
        raise StreamError(
            f"Provider {self._name!r}: the stream ended before the answer was complete",
            provider=self._name,
        )

    @property
    def late_error(self) -> LLMTimeoutError:
        """The error of the deadline that the stream passed."""
        # the deadline that was set is the one that passed
        if self._scope.deadline < self._end:
            return late_error(self._name, f"was silent for {self._idle:g} s")
        return late_error(self._name, f"took longer than {self._total:g} s")


def late_error(name: str, problem: str) -> LLMTimeoutError:
    """Make the error of a provider that passed a deadline."""
    return LLMTimeoutError(f"Provider {name!r} {problem}", provider=name)


def answer_of(provider: Provider, name: str, response: object) -> ChatResponse:
    """Return a provider's answer with unique call ids, and without calls unless it is complete.

    Raises:
        LLMError: what came is no answer.
    """
    if not isinstance(response, ChatResponse):
        raise LLMError(
            f"Provider {name!r} answered with {type(response).__name__}; it must be a ChatResponse",
            provider=name,
        )
    calls = provider.parse_tool_calls(response)
    if calls and response.is_complete:
        return _with_calls(response, calls)
    bare = response.tool_calls is None and not any(map(_is_call, response.content))
    if bare:
        return response
    # an answer that was cut off may hold a call whose arguments are cut off as well
    return response.without_tool_calls()


def _is_call(block: ContentBlock) -> bool:
    return isinstance(block, ToolCallBlock)


def _with_calls(response: ChatResponse, calls: Sequence[ToolCall]) -> ChatResponse:
    """Give every call an id of its own: empty and repeated ones would pair with the wrong result.

    The content is made to show these calls and no others, which nobody would answer.
    """
    if len(calls) == 1 and _shows_only(response, calls[0]):
        return response
    ids = {call.id for call in calls}
    shown = [block.id for block in response.content if isinstance(block, ToolCallBlock)]
    if len(ids) == len(calls) and all(ids) and ids.issuperset(shown):
        if _same(response.tool_calls, calls):
            return response
        return attrs.evolve(response, tool_calls=tuple(calls))
    seen: set[str] = set()
    renamed = []
    for call in calls:
        if call.id and call.id not in seen:
            fresh = call
        else:
            fresh = attrs.evolve(call, id=f"call_{getrandbits(64):016x}")
        seen.add(fresh.id)
        renamed.append(fresh)
    return attrs.evolve(response.without_tool_calls(), tool_calls=tuple(renamed))


def _shows_only(response: ChatResponse, call: ToolCall) -> bool:
    """Whether an answer consists of one call, as most that call anything do."""
    made, content = response.tool_calls, response.content
    if made is None or len(made) != 1 or made[0] is not call or len(content) != 1:
        return False
    block = content[0]
    return type(block) is ToolCallBlock and block.id == call.id and bool(call.id)


def _same(left: Sequence[ToolCall] | None, right: Sequence[ToolCall]) -> bool:
    return left is not None and len(left) == len(right) and all(map(is_, left, right))
