"""Who sees what of a message: content blocks say it themselves, or their kind does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from amplifier.app.text.context_blocks import fenced
from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["Audience", "is_shown", "visible_texts"]

Audience: TypeAlias = Literal["user", "developer", "internal"]
"""Who looks: `user` sees what is meant for users, `developer` thinking and tools as well, `internal` everything."""

_ORDER: Final[Mapping[Audience, int]] = {"user": 0, "developer": 1, "internal": 2}
_ROLES: Final = {"user": "You", "assistant": "Agent"}


def is_shown(block: ContentBlock, audience: Audience) -> bool:
    """Tell whether an audience sees a block: what it says of itself, else text is for users and all else is not."""
    usual: Audience = "developer"
    if isinstance(block, TextBlock):
        usual = "user"
    return _ORDER[block.visibility or usual] <= _ORDER[audience]


def visible_texts(messages: Sequence[MessageDict], audience: Audience) -> Iterator[str]:
    """Write messages as Markdown for an audience, one piece each.

    What modules and instructions say is for `internal` alone.
    """
    for data in messages:
        role = str(data.get("role"))
        is_of_tool = role in ("tool", "function")
        if role not in _ROLES and not is_of_tool and audience != "internal":
            continue
        try:
            message = Message.from_dict(data)
        except ValueError:  # what is no message of ours is nobody's text
            continue
        parts = [
            text
            for block in message.blocks
            if is_shown(block, audience) and (text := _text(block))
        ]
        if is_of_tool and isinstance(message.content, str):
            parts = [fenced(message.content)] if _ORDER[audience] else []
        if parts:
            yield f"## {_ROLES.get(role, role.capitalize())}\n\n" + "\n\n".join(parts)


def _text(block: ContentBlock) -> str:
    match block:
        case TextBlock(text=text):
            return text.strip()
        case ThinkingBlock(thinking=text):
            return "\n".join(f"> {line}" for line in text.strip().splitlines())
        case ToolCallBlock(name=name, input=arguments):
            return f"Calls `{name}`:\n\n" + fenced(
                json.dumps(arguments, indent=1, ensure_ascii=False, default=str)
            )
        case ToolResultBlock(output=output):
            if isinstance(output, str):
                return fenced(output)
            return fenced(json.dumps(output, ensure_ascii=False, default=str))
        case ReasoningBlock(content=content, summary=summary):
            return "\n".join(
                f"> {part}" for part in (*content, *summary) if isinstance(part, str)
            )
        case _:
            return f"({block.type})"
