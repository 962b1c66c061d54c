"""Content as events carry it: plain dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum

__all__ = [
    "ContentBlock",
    "ContentBlockType",
    "TextContent",
    "ThinkingContent",
    "ToolCallContent",
    "ToolResultContent",
]


class ContentBlockType(str, Enum):  # noqa: UP042  # the original's base
    """What a block holds."""

    TEXT = "text"
    THINKING = "thinking"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


@dataclass
class ContentBlock:
    """One block; `raw` is the vendor's own object and is never written."""

    type: ContentBlockType
    raw: object = None

    def to_dict(self) -> dict[str, object]:
        """Write the block as plain data, without `raw`."""
        written = {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if entry.name not in ("type", "raw")
        }
        return {"type": self.type.value, **written}


@dataclass
class TextContent(ContentBlock):
    """Text."""

    type: ContentBlockType = ContentBlockType.TEXT
    text: str = ""


@dataclass
class ThinkingContent(ContentBlock):
    """A model's thinking."""

    type: ContentBlockType = ContentBlockType.THINKING
    text: str = ""


@dataclass
class ToolCallContent(ContentBlock):
    """A call that the model makes."""

    type: ContentBlockType = ContentBlockType.TOOL_CALL
    id: str = ""
    name: str = ""
    arguments: dict[str, object] | None = None


@dataclass
class ToolResultContent(ContentBlock):
    """What a tool returned."""

    type: ContentBlockType = ContentBlockType.TOOL_RESULT
    tool_call_id: str = ""
    output: object = None
    error: str | None = None
