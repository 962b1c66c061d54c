"""The calls of a history that have no result, and the messages that answer them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.values import Value

__all__ = ["OpenCall", "closing_message", "open_calls", "tool_message"]

# The second is the role that older histories have.
_RESULT_ROLES: Final = ("tool", "function")


@attrs.frozen(eq=False, repr=False)
class OpenCall(Value):
    """A tool call in a history that has no result."""

    id: str
    name: str


def open_calls(messages: Sequence[MessageDict]) -> tuple[OpenCall, ...]:
    """Return the calls of the last assistant message that no later message answers, in their order.

    Only the last one is checked: a provider refuses a history as soon as one is open, so none older can be.
    """
    if not messages or _is_plain_answer(messages[-1]):
        return ()
    answered: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        role = message.get("role")
        if role == "assistant":
            return tuple(call for call in _calls(message) if call.id not in answered)
        if role in _RESULT_ROLES:
            answered.update(_answered(message))
    return ()


def _calls(message: MessageDict) -> Iterator[OpenCall]:
    content = Message.from_dict(message).content
    if not isinstance(content, str):
        yield from (
            OpenCall(block.id, block.name)
            for block in content
            if isinstance(block, ToolCallBlock)
        )


def _is_plain_answer(message: MessageDict) -> bool:
    """Tell at a glance whether a message is an answer of texts, as after almost every turn: it need not be read."""
    if message.get("role") != "assistant" or message.get("tool_calls"):
        return False
    content = message.get("content")
    if not isinstance(content, list):
        return isinstance(content, str)
    for block in content:  # noqa: SIM110  # `all` takes three times as long for one block
        if not isinstance(block, dict) or block.get("type") != "text":
            return False
    return True


def _answered(message: MessageDict) -> Iterator[str]:
    call_id = message.get("tool_call_id")
    if isinstance(call_id, str):
        yield call_id
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        yield from (
            str(block["tool_call_id"])
            for block in content
            if isinstance(block, Mapping) and isinstance(block.get("tool_call_id"), str)
        )


def tool_message(
    call_id: str,
    name: str,
    content: str | list[JSONObject],
    *,
    metadata: Mapping[str, JSONValue] | None = None,
) -> MessageDict:
    """Build the stored message that answers a tool call: with a text, or with content blocks."""
    message: MessageDict = {
        "role": "tool",
        "tool_call_id": call_id,
        "name": name,
        "content": content,
    }
    if metadata is not None:
        message["metadata"] = metadata
    return message


def closing_message(call: OpenCall, reason: str) -> MessageDict:
    """Build the message that answers a call which never returned; its metadata says it was made up."""
    return tool_message(
        call.id, call.name, f"Error: {reason}", metadata={"synthesized": True}
    )
