"""Messages as contexts meet them: every shape of the contracts, vendors' own fields, and odd texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

_DEEP: Final[JSONValue] = {"a": {"b": {"c": [{"d": [1, [2, [3, {"e": None}]]]}]}}}

MESSAGES: Final[Mapping[str, tuple[str, MessageDict]]] = {
    "plain-texts": ("a text", {"role": "user", "content": "What is in notes.txt?"}),
    "empty-texts": ("an empty text", {"role": "user", "content": ""}),
    "missing-contents": ("null as content", {"role": "assistant", "content": None}),
    "instructions": (
        "the role system",
        {"role": "system", "content": "Answer briefly."},
    ),
    "developer-messages": (
        "the role developer",
        {"role": "developer", "content": "Answer in French."},
    ),
    "content-blocks": (
        "content blocks",
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "One."},
                {"type": "text", "text": "Two."},
            ],
        },
    ),
    "empty-contents": ("no content blocks", {"role": "assistant", "content": []}),
    "images": (
        "an image",
        {
            "role": "user",
            "content": [
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "iVBORw0KGgo=",
                    },
                }
            ],
        },
    ),
    "thinking-signatures": (
        "signed thinking",
        {
            "role": "assistant",
            "content": [
                {
                    "type": "thinking",
                    "thinking": "Let me see.",
                    "signature": "EqQBCkgIBRAB+/==",
                },
                {"type": "text", "text": "Yes."},
            ],
        },
    ),
    "redacted-thinking": (
        "encrypted thinking",
        {
            "role": "assistant",
            "content": [
                {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"}
            ],
        },
    ),
    "reasoning-items": (
        "a reasoning item",
        {
            "role": "assistant",
            "content": [
                {
                    "type": "reasoning",
                    "content": [],
                    "summary": [{"type": "summary_text", "text": "Short."}],
                    "id": "r",
                }
            ],
        },
    ),
    "unknown-blocks": (
        "a block of a type that nobody knows",
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "s1", "input": {"query": "x"}}
            ],
        },
    ),
    "vendor-fields": (
        "fields of a vendor's own",
        {
            "role": "assistant",
            "content": "Hi.",
            "id": "msg_1",
            "vendor": {"cache": {"ttl": 5}},
            "refusal": None,
        },
    ),
    "calls-in-blocks": (
        "tool calls among the blocks",
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_call",
                    "id": "call_b",
                    "name": "read",
                    "input": {"path": "a", "n": 1},
                }
            ],
            "tool_calls": [
                {
                    "id": "call_b",
                    "tool": "read",
                    "name": "read",
                    "arguments": {"path": "a", "n": 1},
                }
            ],
        },
    ),
    "calls-beside-contents": (
        "tool calls beside the content",
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_f",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a"}'},
                }
            ],
        },
    ),
    "tool-results": (
        "a tool's result",
        {
            "role": "tool",
            "tool_call_id": "call_x",
            "name": "read",
            "content": "line 1\nline 2",
        },
    ),
    "tool-results-of-the-older-role": (
        "the role function",
        {"role": "function", "name": "read", "tool_call_id": "call_y", "content": "3"},
    ),
    "metadata": (
        "metadata",
        {
            "role": "user",
            "content": "Go on.",
            "metadata": {"source": "hook", "hook_name": "h", "n": 1.5, "x": None},
        },
    ),
    "names": ("a speaker's name", {"role": "user", "name": "Ada", "content": "Hello."}),
    "any-script": (
        "texts in any script",
        {"role": "user", "content": "žluť 漢字 عربى 🙂 e\u0301 \u202e \u2028 \ufeff"},
    ),
    "control-characters": (
        "control characters",
        {"role": "user", "content": "a\x00b\x1b[31mc\r\n\t\x7f"},
    ),
    "broken-characters": (
        "half of a surrogate pair",
        # models cut emoji in two, and a file in UTF-8 cannot hold the half
        {"role": "user", "content": "broken \ud83d text"},
    ),
    "numbers": (
        "numbers of any size",
        {
            "role": "user",
            "content": "x",
            # 2**53 + 1 is the first integer that a float cannot hold
            "n": [0, -1, 2**53 + 1, 10**30, 0.1, 1e308, -0.5, 1.0],
        },
    ),
    "booleans-and-nulls": (
        "booleans and nulls",
        {"role": "user", "content": "x", "flags": [True, False, None]},
    ),
    "empty-values": (
        "empty lists, objects and texts",
        {"role": "user", "content": "x", "l": [], "o": {}, "t": ""},
    ),
    "nested-values": (
        "deeply nested values",
        {"role": "user", "content": "x", "deep": _DEEP},
    ),
    "long-texts": (
        "a text of a million characters",
        {"role": "user", "content": "0123456789" * 100_000},
    ),
    "odd-keys": (
        "keys that look like something else",
        {"role": "user", "content": "x", "": 1, "a.b": 2, "__c__": 3},
    ),
}
"""Each message by the name under which a context keeps it, and what is special about it."""


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
