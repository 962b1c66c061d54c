"""Where the API keeps what it read: marks at the ends of what the next request begins with.

A mark behind the tools, one behind the system's text, one behind each of the last two messages of the user: what is
before the older one was read with the last request, what is before the newer one will be read with the next. Marks
are no part of what is compared, so that moving them does not change the beginning. Tools that the API loads later are
no part of the beginning, and it refuses a mark on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["MAX_MARKS", "mark"]

MAX_MARKS: Final = 4
"""How many marks the API takes."""

_MARKED: Final = frozenset({"text", "image", "tool_use", "tool_result", "document"})


def mark(
    tools: Sequence[JSONObject],
    system: Sequence[JSONObject],
    messages: Sequence[JSONObject],
    *,
    ttl: Literal["5m", "1h"],
    max_marks: int = MAX_MARKS,
) -> None:
    """Mark blocks of a request that was just written, in place, at most `max_marks` of them."""
    sign: JSONObject
    if ttl == "5m":
        sign = {"type": "ephemeral"}
    else:
        sign = {"type": "ephemeral", "ttl": ttl}
    loaded = [tool for tool in tools if tool.get("defer_loading") is not True]
    # Tools and system first: they are what all requests of a session share.
    ends = [blocks[-1] for blocks in (loaded, system) if blocks]
    ends += _ends(messages, max_marks - len(ends))
    for block in ends[:max_marks]:
        block["cache_control"] = sign


def _ends(messages: Sequence[JSONObject], count: int) -> Iterator[JSONObject]:
    """Yield the last blocks of the user's last messages that can be marked, two messages at most."""
    # Two, as the module's head explains: one to be read from, one to be written.
    left = min(count, 2)
    for message in reversed(messages):
        if left <= 0:
            return
        if (
            message["role"] == "user"
            and (block := _last_marked(message["content"])) is not None
        ):
            left -= 1
            yield block


def _last_marked(content: JSONValue) -> JSONObject | None:
    if isinstance(content, list):
        blocks = content
    else:
        blocks = []
    return next(
        (block for block in reversed(blocks) if block.get("type") in _MARKED), None
    )
