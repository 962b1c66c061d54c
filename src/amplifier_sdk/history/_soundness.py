"""Whether a history is sound, found in one walk over roles and ids alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from amplifier_sdk.content import TextBlock, ToolCallBlock, ToolResultBlock
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["has_content", "is_sound", "read_quickly"]

_WORDS: Final = Message(role="user", content="words")
_SPEAKERS: Final = ("user", "assistant", "system", "developer")


def is_sound(messages: Iterable[Message]) -> bool:
    """Tell whether every call has an id of its own and its result directly behind it, in order, and nothing else is.

    Answers without any content are not sound either.
    """
    used: set[str] = set()
    # the ids of the calls whose results must come next, the last one first
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            if any(
                not waiting or waiting.pop() != call_id for call_id in _answers(message)
            ):
                return False
            continue
        if waiting or _holds_results(message):
            return False
        if message.role == "assistant":
            waiting = _calls(message)
            if not waiting and not has_content(message):
                return False
            # one update finds an id that is used twice, in this message or before it
            known = len(used)
            used.update(waiting)
            if len(used) != known + len(waiting) or "" in waiting:
                return False
    return not waiting


def _calls(message: Message) -> list[str]:
    """Return the ids of a message's calls, the last one first."""
    if isinstance(message.content, str):
        return []
    return [
        block.id
        for block in reversed(message.content)
        if isinstance(block, ToolCallBlock)
    ]


def _holds_results(message: Message) -> bool:
    return not isinstance(message.content, str) and any(
        isinstance(b, ToolResultBlock) for b in message.content
    )


def _answers(message: Message) -> list[str]:
    """Return the ids that a message of the role `tool` answers; an empty one where it names two for one result."""
    own = message.tool_call_id
    if isinstance(message.content, str):
        return [own or ""]
    ids = [
        block.tool_call_id
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
    if not ids:
        return [own or ""]
    if len(ids) > 1 or not own or own == ids[0]:
        return ids
    return [""]


def has_content(message: Message) -> bool:
    """Tell whether a message says anything besides results: a text that is not blank, a block, a vendor's field."""
    if isinstance(message.content, str):
        return bool(message.content.strip()) or any(message.extras.values())
    for block in message.content:
        if not isinstance(block, (TextBlock, ToolResultBlock)) or (
            isinstance(block, TextBlock) and block.text.strip()
        ):
            return True
    return any(message.extras.values())


def read_quickly(messages: Sequence[MessageDict]) -> Iterator[Message]:
    """Read stored messages for `is_sound`, with the same message for all that are words and nothing else.

    Raises:
        ValueError: a message cannot be read.
    """
    return (
        _WORDS if _is_words(message) else Message.from_dict(message)
        for message in messages
    )


def _is_words(message: MessageDict) -> bool:
    """Tell whether a message is text alone, and some: most of a long history is."""
    role, content = message.get("role"), message.get("content")
    if role not in _SPEAKERS or message.get("tool_calls"):
        return False
    # An empty prompt is sound, and an empty answer is not.
    if isinstance(content, str):
        return bool(content.strip()) or role != "assistant"
    if not isinstance(content, list) or len(content) != 1:
        return False
    block = content[0]
    text = None
    if isinstance(block, dict) and len(block) == 2 and block.get("type") == "text":
        text = block.get("text")
    return isinstance(text, str) and bool(text.strip())
