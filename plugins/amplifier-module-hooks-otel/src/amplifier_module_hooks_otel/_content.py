"""Content as the conventions write it: messages in parts, redacted, as JSON in a text of bounded length."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.media.encoded import described_media
from amplifier_kit.redaction import SinkRedactor
from amplifier_sdk.content import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    VideoBlock,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import media_summary
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["ContentWriter"]

_SPARE: Final = 8_192
"""Characters that the redactor sees behind the longest text: a secret that is cut is not recognised."""
_EDGE: Final = 4_096
"""How many characters before such a cut are never written."""
_DEPTH: Final = 60


@attrs.define(eq=False)
class ContentWriter:
    """Writes what a session says into attributes; no text in them is longer than `longest`, none of them twice that.

    The messages of a history are written once, though every request has them: a stored message does not change.
    """

    redactor: SinkRedactor
    longest: int
    _written: dict[int, tuple[MessageDict, str]] = attrs.field(factory=dict)

    def messages(
        self, messages: Sequence[MessageDict], finish_reason: str | None = None
    ) -> str:
        """Write the newest messages that there is room for, in their order."""
        retained: list[str] = []
        written: dict[int, tuple[MessageDict, str]] = {}
        room = self.longest
        for at in range(len(messages) - 1, -1, -1):
            message, known = messages[at], self._written.get(at)
            if known is not None and known[0] == message:
                text = known[1]
            else:
                text = self._message(message, finish_reason)
            room -= len(text)
            if retained and room < 0:
                break
            retained.append(text)
            written[at] = message, text
        if finish_reason is None:
            self._written = written
        return f"[{', '.join(reversed(retained))}]"

    def _message(self, message: MessageDict, finish_reason: str | None) -> str:
        written: JSONObject = {
            "role": str(message.get("role")),
            "parts": self._parts(message),
        }
        return self.value(
            written
            if finish_reason is None
            else {**written, "finish_reason": finish_reason}
        )

    def value(self, value: object) -> str:
        """Write any JSON value; what is longer is replaced by its length."""
        text = json.dumps(self.redactor.redact(self._plain(value)), ensure_ascii=False)
        if len(text) <= 2 * self.longest:
            return text
        return json.dumps({"left_out": f"{len(text)} characters"})

    def text(self, text: str) -> str:
        """Write a text as it is."""
        return self.redactor.redact_text(self._cut(text))

    def _parts(self, message: MessageDict) -> list[JSONValue]:
        read = Message.from_dict(message)
        if read.role == "tool" and isinstance(read.content, str):
            return [
                {
                    "type": "tool_call_response",
                    "id": read.tool_call_id,
                    "response": read.content,
                }
            ]
        blocks = (
            [TextBlock(text=read.content)]
            if isinstance(read.content, str)
            else read.content
        )
        return [_part(block) for block in blocks]

    def _plain(self, value: object, depth: int = 0) -> JSONValue:
        """Return a value as JSON data, its texts cut."""
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, str):
            return self._cut(value)
        if depth < _DEPTH and isinstance(value, Mapping):
            return {
                str(key): self._plain(item, depth + 1) for key, item in value.items()
            }
        if depth < _DEPTH and isinstance(value, (list, tuple)):
            return [self._plain(item, depth + 1) for item in value]
        if isinstance(value, float):
            if value - value == 0:
                return value
            return str(value)
        if isinstance(value, (Mapping, list, tuple)):
            return "(nested too deep)"
        return f"({type(value).__name__})"

    def _cut(self, text: str) -> str:
        """Cut a long text behind its redaction, so that no part of a secret is left at the edge."""
        described = described_media(text)
        if described is not None:
            return described
        if len(text) <= self.longest:
            return text
        redacted = self.redactor.redact_text(text[: self.longest + _SPARE])
        retained = redacted[: min(self.longest, max(0, len(redacted) - _EDGE))]
        return f"{retained}… ({len(text)} characters)"


def _part(block: ContentBlock) -> JSONObject:
    """Write one block as a part: of media what describes them, of what else is no text the kind alone."""
    match block:
        case TextBlock():
            return {"type": "text", "content": block.text}
        case ThinkingBlock():
            return {"type": "reasoning", "content": block.thinking}
        case ReasoningBlock():
            return {"type": "reasoning", "content": block.text}
        case ToolCallBlock():
            return {
                "type": "tool_call",
                "id": block.id,
                "name": block.name,
                "arguments": dict(block.input),
            }
        case ToolResultBlock():
            return {
                "type": "tool_call_response",
                "id": block.tool_call_id,
                "response": block.output,
            }
        case ImageBlock() | AudioBlock() | DocumentBlock() | VideoBlock():
            try:
                summary = media_summary(block)
            except ValueError:  # no base64
                return {"type": block.type}
            summary.pop("text", None)
            return summary
        case _:
            return {"type": block.type}
