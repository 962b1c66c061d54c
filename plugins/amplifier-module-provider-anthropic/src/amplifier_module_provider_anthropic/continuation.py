"""An answer in several parts: the API pauses long ones, and goes on when it gets back what it said."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amplifier_module_provider_anthropic.answers import PAUSED, STOP_REASON
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import Delta

__all__ = ["Continuation"]


@attrs.define(eq=False)
class Continuation:
    """The parts of one answer so far.

    Args:
        request: what the answer is to.
    """

    request: ChatRequest
    _parts: list[ChatResponse] = attrs.field(factory=list, init=False)
    _blocks: int = attrs.field(default=0, init=False)

    @property
    def rounds(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    @property
    def is_paused(self) -> bool:
        """Whether the last part ended with a pause, and there is something to go on from."""
        last = self._parts[-1]
        # An empty part would be sent back as nothing, and the API would pause again for
        # ever.
        return bool(last.content) and (last.metadata or {}).get(STOP_REASON) == PAUSED

    def next_request(self) -> ChatRequest:
        """Return the request for the next part: the first one, with the parts behind its messages."""
        if not self._parts:
            return self.request
        said = [
            Message(role="assistant", content=part.content, metadata=part.metadata)
            for part in self._parts
        ]
        return attrs.evolve(self.request, messages=(*self.request.messages, *said))

    def add(self, part: ChatResponse) -> None:
        """Take the next part."""
        self._parts.append(part)
        self._blocks += len(part.content)

    def shifted(self, delta: Delta) -> Delta:
        """Return the delta with its block counted from the answer's beginning."""
        if self._blocks:
            return attrs.evolve(delta, index=delta.index + self._blocks)
        return delta

    def answer(self) -> ChatResponse:
        """Return the parts as one answer: its content and usage are theirs, the rest is the last one's."""
        first, *more = self._parts
        if not more:
            return first
        usage = first.usage
        for part in more:
            if usage is None:
                usage = part.usage
            else:
                usage = usage if part.usage is None else usage + part.usage
        return attrs.evolve(
            # The last part says how the answer ended.
            more[-1],
            content=[block for part in self._parts for block in part.content],
            tool_calls=[call for part in self._parts for call in part.tool_calls or ()]
            or None,
            usage=usage,
            degradation=next(
                (part.degradation for part in self._parts if part.degradation), None
            ),
            metadata=self._metadata(),
        )

    def _metadata(self) -> Mapping[str, JSONValue]:
        return {**(self._parts[-1].metadata or {}), "anthropic:parts": self.rounds}
