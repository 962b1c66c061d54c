"""Messages in Ollama's words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message, Role

__all__ = ["MessageWriter"]

_ROLES: Final[Mapping[Role, str]] = {
    "system": "system",
    # the API has no such role; its text stands in front of the user's, as the user's
    "developer": "user",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


@attrs.define(eq=False)
class MessageWriter:
    """Writes a conversation message by message; its images are given by their data."""

    _names: dict[str, str] = attrs.field(factory=dict, init=False)

    def write(self, messages: Iterable[Message]) -> list[JSONObject]:
        """Return the messages for the body of a request, in order."""
        return [written for message in messages for written in self._write(message)]

    def _write(self, message: Message) -> list[JSONObject]:
        blocks = message.blocks
        results = [block for block in blocks if isinstance(block, ToolResultBlock)]
        if not results:
            if message.role == "tool" and message.tool_call_id is not None:
                return [self._result(message.tool_call_id, message.name, blocks)]
            return [self._said(message.role, blocks)]
        written = [
            self._result(block.tool_call_id, message.name, [_output(block)])
            for block in results
        ]
        if others := [
            block for block in blocks if not isinstance(block, ToolResultBlock)
        ]:
            written.append(
                # a tool's message must belong to a call, and these blocks belong to
                # none
                self._said("user" if message.role == "tool" else message.role, others)
            )
        return written

    def _said(self, role: Role, blocks: Iterable[ContentBlock]) -> JSONObject:
        """Write what somebody said; blocks of other vendors have no place here and are left out."""
        texts: list[str] = []
        thoughts: list[str] = []
        images: list[str] = []
        calls: list[JSONObject] = []
        for block in blocks:
            match block:
                case TextBlock():
                    texts.append(block.text)
                case ThinkingBlock():
                    thoughts.append(block.thinking)
                case ImageBlock():
                    images.append(str(block.source.get("data")))
                case ToolCallBlock():
                    # results name only the call; the API wants the name of the tool
                    self._names[block.id] = block.name
                    calls.append(
                        {
                            "id": block.id,
                            "function": {"name": block.name, "arguments": block.input},
                        }
                    )
                case _:
                    pass
        message: JSONObject = {"role": _ROLES[role], "content": "".join(texts)}
        if thoughts:
            message["thinking"] = "".join(thoughts)
        if images:
            message["images"] = images
        if calls:
            message["tool_calls"] = calls
        return message

    def _result(
        self, call_id: str, name: str | None, blocks: Iterable[ContentBlock]
    ) -> JSONObject:
        """Write a tool's result; models know it by the tool's name, newer servers by the call as well."""
        message = self._said("tool", blocks)
        if tool := self._names.get(call_id) or name:
            message["tool_name"] = tool
        message["tool_call_id"] = call_id
        return message


def _output(block: ToolResultBlock) -> TextBlock:
    output = block.output
    return TextBlock(
        text=output
        if isinstance(output, str)
        else json.dumps(output, ensure_ascii=False)
    )
