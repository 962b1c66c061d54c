"""Messages as contexts meet them: every shape of the contracts, vendors' own fields, and odd texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

_FILE: Final = Path(__file__).with_name("messages.json")
MESSAGES: Final[Mapping[str, tuple[str, MessageDict]]] = {
    name: (about, message)
    for name, (about, message) in json.loads(_FILE.read_text("utf-8")).items()
}
"""Each message by the name under which a context keeps it, and what is special about it.

Models cut emoji in two, and a file in UTF-8 cannot hold the half; 2**53 + 1 is the first integer that no float holds.
"""

# a model that repeats itself; a file of a megabyte would say no more
MESSAGES["long-texts"][1]["content"] = "0123456789" * 100_000


def numbered(count: int, *, length: int = 20) -> list[MessageDict]:
    """Make a conversation of plain messages, person and model in turn, each at least `length` characters long."""
    return [
        {
            "role": "assistant" if number % 2 else "user",
            "content": f"message {number} ".ljust(length, "."),
        }
        for number in range(count)
    ]


def exchange(
    number: int, calls: int = 1, *, in_blocks: bool = False, length: int = 200
) -> list[MessageDict]:
    """Make a turn of a conversation: a prompt, an answer with tool calls, their results, and the last answer."""
    ids = [f"call_{number}_{index}" for index in range(calls)]
    if in_blocks:
        message: MessageDict = {
            "role": "assistant",
            "content": [
                {"type": "tool_call", "id": id_, "name": "read", "input": {"n": number}}
                for id_ in ids
            ],
        }
    else:
        made: list[JSONValue] = [
            {
                "id": id_,
                "type": "function",
                "function": {"name": "read", "arguments": "{}"},
            }
            for id_ in ids
        ]
        message = {"role": "assistant", "content": None, "tool_calls": made}
    results: list[MessageDict] = [
        {
            "role": "tool",
            "tool_call_id": id_,
            "name": "read",
            "content": f"result of {id_} ".ljust(length, "r"),
        }
        for id_ in ids
    ]
    return [
        {"role": "user", "content": f"prompt {number} ".ljust(length, "p")},
        message,
        *results,
        {"role": "assistant", "content": f"answer {number} ".ljust(length, "a")},
    ]
