"""Continuing an answer that was cut at the model's limit, and joining the parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.open_data import as_list
from amplifier_kit.vendors.responses.answers import CONTINUATIONS, REASONING_ITEMS
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.content import TextBlock
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import Delta

__all__ = ["can_go_on", "continued", "joined", "moved"]

_GO_ON: Final = "Your answer was cut off at the limit of its length. Go on exactly where it ends and repeat nothing."


def can_go_on(request: ChatRequest, answer: ChatResponse) -> bool:
    """Tell whether an answer shall be continued.

    One that the request's own limit cut stays cut: whoever set the limit meant it. So does one in a format, of which
    a second half would be a whole one again, and one without text: reasoning alone is nothing to go on from.
    """
    if answer.finish_reason != "length" or request.max_output_tokens is not None:
        return False
    if (
        request.response_format is not None
        and request.response_format.get("type") != "text"
    ):
        return False
    return any(isinstance(block, TextBlock) for block in answer.content)


def continued(request: ChatRequest, parts: Sequence[ChatResponse]) -> ChatRequest:
    """Return the request that goes on from these parts of an answer; the request itself when there are none."""
    if not parts:
        return request
    content = [block for part in parts for block in part.content]
    further = (
        Message(role="assistant", content=content),
        Message(role="developer", content=_GO_ON),
    )
    return attrs.evolve(request, messages=(*request.messages, *further))


def joined(parts: Sequence[ChatResponse]) -> ChatResponse:
    """Return the parts as one answer, which ends as the last does and costs what all do."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return first
    facts: JSONObject = {**(last.metadata or {}), CONTINUATIONS: len(parts) - 1}
    known = [(part.metadata or {}).get(REASONING_ITEMS) for part in parts]
    if reasoning := [identity for items in known for identity in as_list(items)]:
        facts[REASONING_ITEMS] = reasoning
    usages = [part.usage for part in parts if part.usage is not None]
    return attrs.evolve(
        last,
        content=[block for part in parts for block in part.content],
        usage=sum(usages[1:], usages[0]) if usages else None,
        degradation=first.degradation,
        metadata=facts,
    )


def moved(delta: Delta, by: int) -> Delta:
    """Return a delta of a later part under the number that its block has in the joined answer."""
    if by:
        return attrs.evolve(delta, index=delta.index + by)
    return delta
