"""The changes that a repair makes to stored messages; each returns a new message and leaves the given one alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from amplifier_sdk.history._pairs import PairedCall
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["part_of", "readable", "with_call_ids", "with_result_ids", "without_results"]


def readable(message: MessageDict) -> MessageDict:
    """Make a message of one that cannot be read: as much of it as can be, the rest as text."""
    message = {
        **message,
        "role": message.get("role")
        if _can_be_read({"role": message.get("role")})
        else "user",
    }
    if _can_be_read(message):
        return message
    message.pop("tool_calls", None)
    if _can_be_read(message):
        return message
    content = json.dumps(message.get("content"), ensure_ascii=False, default=str)
    return {**message, "content": content}


def _can_be_read(message: MessageDict) -> bool:
    try:
        Message.from_dict(message)
    except ValueError:
        return False
    return True


def with_call_ids(message: MessageDict, calls: Sequence[PairedCall]) -> MessageDict:
    """Write the new ids of a message's calls among its blocks and beside its content."""
    rest = iter(calls)
    by_id: dict[str, list[str]] = defaultdict(list)
    content: list[JSONValue] = []
    blocks = message.get("content")
    for block in _items(blocks):
        if _type(block) == "tool_call":
            call = next(rest)
            by_id[call.id].append(call.new_id)
            content.append({**_object(block), "id": call.new_id})
        else:
            content.append(block)
    changed = {**message}
    if by_id:
        changed["content"] = content
    if _items(message.get("tool_calls")):
        changed["tool_calls"] = list(
            _beside(_items(message.get("tool_calls")), by_id, rest)
        )
    return changed


def _beside(
    entries: Sequence[JSONValue],
    by_id: Mapping[str, Sequence[str]],
    rest: Iterator[PairedCall],
) -> Iterator[JSONValue]:
    """Yield the calls beside the content: those that repeat a block get its id, the others are calls of their own."""
    seen: dict[str, int] = defaultdict(int)
    for entry in entries:
        call_id = str(_object(entry).get("id") or "")
        blocks = by_id.get(call_id)
        if blocks:
            # of more entries than blocks the others repeat the last one
            yield {**_object(entry), "id": blocks[min(seen[call_id], len(blocks) - 1)]}
            seen[call_id] += 1
        elif call_id or not by_id:
            yield {**_object(entry), "id": next(rest).new_id}
        else:
            yield entry


def with_result_ids(message: MessageDict, ids: Sequence[str]) -> MessageDict:
    """Write the ids of the calls that a message's results answer into it and its blocks."""
    content = _items(message.get("content"))
    has_blocks = any(_type(block) == "tool_result" for block in content)
    changed = {**message}
    # one id beside the content can name one call alone: of several the blocks' count
    if len(ids) > 1:
        changed.pop("tool_call_id", None)
    elif not has_blocks or message.get("tool_call_id"):
        changed["tool_call_id"] = ids[0]
    if has_blocks:
        left = iter(ids)
        changed["content"] = [
            {**_object(block), "tool_call_id": next(left)}
            if _type(block) == "tool_result"
            else block
            for block in content
        ]
    return changed


def part_of(
    message: MessageDict, start: int, stop: int | None, call_id: str, *, alone: bool
) -> MessageDict:
    """Make a message of its own of one of several results: the blocks from `start` to `stop` of a message's content.

    Args:
        message: the message that holds the results.
        start: the index of the first block.
        stop: the index after the last one; `None` means all that follow.
        call_id: the call that the result answers.
        alone: take nothing but the content: the message itself is somebody else's.
    """
    blocks = [
        {**_object(block), "tool_call_id": call_id}
        if _type(block) == "tool_result"
        else block
        for block in _items(message.get("content"))[start:stop]
    ]
    base: MessageDict
    if alone:
        base = {"role": "tool"}
    else:
        base = {**message}
    return {**base, "tool_call_id": call_id, "content": blocks}


def without_results(message: MessageDict) -> MessageDict:
    """Take the results out of a message of another role."""
    return {
        **message,
        "content": [
            b for b in _items(message.get("content")) if _type(b) != "tool_result"
        ],
    }


def _items(value: JSONValue) -> Sequence[JSONValue]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    return ()


def _object(value: JSONValue) -> Mapping[str, JSONValue]:
    if isinstance(value, Mapping):
        return value
    return {}


def _type(value: JSONValue) -> JSONValue:
    return _object(value).get("type")
