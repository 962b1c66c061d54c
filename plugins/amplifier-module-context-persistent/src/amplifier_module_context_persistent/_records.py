"""What the file holds: messages, and epochs, each of which begins the history anew.

An epoch is one record with the messages that it begins with, so that a crash leaves the old history or the new
one. What was before it stays in the file and is no longer read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amplifier_sdk import JSONValue, MessageDict
from amplifier_sdk.stores import LogEntry

__all__ = ["EPOCH", "HOLDS", "MESSAGE", "check", "epoch", "messages_of"]

HOLDS: Final = "context-messages"
"""The name under which a log says that it holds a conversation."""

MESSAGE: Final = "message"
EPOCH: Final = "epoch"


def epoch(
    reason: str, messages: Sequence[MessageDict], **details: JSONValue
) -> JSONValue:
    """Make the data of an epoch: why it begins, and with which messages."""
    return {
        "reason": reason,
        **details,
        "messages": [dict(message) for message in messages],
    }


def check(record: LogEntry) -> str | None:
    """Say what is wrong with a record, if anything is."""
    match record.kind, record.data:
        case "message", data:
            if _is_message(data):
                return None
            return "it is no message"
        case "epoch", {"messages": list() as messages}:
            if all(map(_is_message, messages)):
                return None
            return "it begins with something that is no message"
        case "epoch", _:
            return "it says not what it begins with"
        case _:
            return f"records of the kind {record.kind!r} are unknown"


def messages_of(record: LogEntry) -> list[MessageDict]:
    """Return the messages in a record that `check` finds nothing wrong with."""
    data = record.data
    assert isinstance(data, Mapping)
    found = [data] if record.kind == MESSAGE else data["messages"]
    assert isinstance(found, list)
    return [message for message in found if isinstance(message, dict)]


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)
