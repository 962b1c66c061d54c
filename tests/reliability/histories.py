"""What vendors ask of a history, checked without the code that repairs histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amplifier_sdk import JSONValue, MessageDict


def objection(messages: Sequence[MessageDict]) -> str | None:
    """Say why a vendor would refuse this: every call has one result, directly after it, in order, ids unique."""
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        answered = _answers(message)
        if waiting or answered:
            if answered != waiting[: len(answered)] or not answered:
                return f"message {index} answers {answered}, and {waiting} wait"
            waiting = waiting[len(answered) :]
            continue
        waiting = _calls(message)
        if seen.intersection(waiting) or len(set(waiting)) < len(waiting):
            return f"message {index} uses an id again: {waiting}"
        seen.update(waiting)
    return f"{waiting} have no result" if waiting else None


def _calls(message: MessageDict) -> list[str]:
    return [
        str(part["id"]) for part in _parts(message) if part.get("type") == "tool_call"
    ]


def _answers(message: MessageDict) -> list[str]:
    own = message.get("tool_call_id")
    blocks = [
        str(part["tool_call_id"])
        for part in _parts(message)
        if part.get("type") == "tool_result"
    ]
    return blocks or ([own] if isinstance(own, str) else [])


def _parts(message: MessageDict) -> list[Mapping[str, JSONValue]]:
    content = message.get("content")
    return (
        [part for part in content if isinstance(part, Mapping)]
        if isinstance(content, (list, tuple))
        else []
    )
