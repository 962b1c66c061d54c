"""Going on from an answer that the vendor stores, instead of sending the history again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.vendors.responses._fields import text
from amplifier_kit.vendors.responses.answers import CONTINUATIONS, RESPONSE_ID, STATUS
from amplifier_sdk.messages import Message

__all__ = ["ResponseChain", "chain_of"]

_COMPLETED: Final = "completed"


@attrs.frozen
class ResponseChain:
    """A stored answer and the messages that are new since."""

    response_id: str
    messages: Sequence[Message]


def chain_of(messages: Sequence[Message]) -> ResponseChain | None:
    """Return the chain of a conversation, or `None` when its last answer is none to go on from.

    An answer that was cut, continued or given by another vendor is none; nor is one with nothing new behind it.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role != "assistant":
            continue
        facts = message.metadata or {}
        identity = text(facts, RESPONSE_ID)
        is_whole = facts.get(STATUS) == _COMPLETED and CONTINUATIONS not in facts
        is_last = place == len(messages) - 1
        if identity is None or not is_whole or is_last:
            return None
        return ResponseChain(identity, messages[place + 1 :])
    return None
