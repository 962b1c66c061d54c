"""What of a history may be left out together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from amplifier_sdk import JSONValue, MessageDict

__all__ = ["pieces"]


def pieces(messages: Sequence[MessageDict]) -> list[list[int]]:
    """Split a history into what may be left out together, by index, the oldest first.

    Before the latest prompt a piece is a whole turn, so that no view starts with half of one; after it, an
    assistant message with its results. Nothing is cut between a call and its result, whatever a handler put
    there. Instructions, the latest prompt and the last step after it always stay.
    """
    prompts = {index for index, message in enumerate(messages) if _is_prompt(message)}
    latest = max((index for index in prompts if messages[index].get("role") == "user"), default=-1)
    inside = _inside_calls(messages)
    found: list[list[int]] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "system" or index == latest:
            continue
        begins_turn = index in prompts and index - 1 not in prompts
        begins_step = index > latest and (role == "assistant" or index == latest + 1)
        if not found or (index not in inside and (begins_turn or begins_step)):
            found.append([])
        found[-1].append(index)
    is_running = bool(found) and found[-1][-1] > latest
    return found[:-1] if is_running else found


def _is_prompt(message: MessageDict) -> bool:
    """Tell whether a person, or the application for them, speaks; what a handler injects is part of a turn."""
    metadata = message.get("metadata")
    injected = isinstance(metadata, Mapping) and metadata.get("source") == "hook"
    return message.get("role") in ("user", "developer") and not injected


def _inside_calls(messages: Sequence[MessageDict]) -> set[int]:
    """Return where a call waits for its result: behind its message, up to and with the result."""
    inside: set[int] = set()
    made: dict[str, int] = {}
    for index, message in enumerate(messages):
        for call_id in _result_ids(message):
            if call_id in made:
                inside.update(range(made[call_id] + 1, index + 1))
        if message.get("role") == "assistant":
            made.update(dict.fromkeys(_call_ids(message), index))
    return inside


def _call_ids(message: MessageDict) -> Iterator[str]:
    """Return the ids of the calls that a message makes, among its blocks or beside them."""
    for key in ("content", "tool_calls"):
        yield from (str(part["id"]) for part in _objects(message.get(key)) if isinstance(part.get("id"), str))


def _result_ids(message: MessageDict) -> Iterator[str]:
    """Return the ids of the calls that a message answers, itself or by its blocks."""
    for part in (message, *_objects(message.get("content"))):
        call_id = part.get("tool_call_id")
        if isinstance(call_id, str):
            yield call_id


def _objects(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, (list, tuple)) else []
