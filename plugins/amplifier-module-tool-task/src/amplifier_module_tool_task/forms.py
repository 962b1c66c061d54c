"""The form in which messages are inherited: plain texts, calls and results, each of a bounded length."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_module_tool_task.truncation import shortened
from amplifier_sdk.content import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    VideoBlock,
)
from amplifier_sdk.history import tool_message
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["Form", "Scope"]

Scope: TypeAlias = Literal["conversation", "agents", "full"]
"""What is inherited: the texts; the calls of agents with their answers as well; all calls with their results."""

_NOTES: Final[Mapping[str, str]] = {
    "audio": "[a recording is not shown]",
    "document": "[a document is not shown]",
    "image": "[an image is not shown]",
    "video": "[a video is not shown]",
}


@attrs.frozen(kw_only=True)
class Form:
    """How much of each message is inherited; thinking and vendors' own parts never are.

    Args:
        scope: what of a step.
        tool: the name of the tool that calls agents.
        limit: characters of one text.
    """

    scope: Scope
    tool: str
    limit: int

    def prompt(self, message: Message) -> Iterator[MessageDict]:
        """Yield what a person said."""
        if text := _text(message):
            yield {"role": "user", "content": self._short(text)}

    def step(self, messages: Sequence[Message]) -> Iterator[MessageDict]:
        """Yield an answer, the calls of it that are inherited, and their results; each call has its result here."""
        # A result without its call, and a call without its result, would be refused by
        # vendors.
        ids = {call.id for message in messages for call in self._calls(message)}
        for message in messages:
            if message.role == "assistant":
                yield from self._answer(message)
            elif message.role == "tool":
                for call_id, text in _results(message):
                    if call_id in ids:
                        yield tool_message(
                            call_id, message.name or "", self._short(text)
                        )

    def _calls(self, message: Message) -> list[ToolCallBlock]:
        if self.scope == "conversation":
            return []
        calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
        return [
            call for call in calls if self.scope == "full" or call.name == self.tool
        ]

    def _answer(self, message: Message) -> Iterator[MessageDict]:
        text, calls = message.text.strip(), self._calls(message)
        if not calls:
            if text:
                yield {"role": "assistant", "content": self._short(text)}
            return
        blocks: list[JSONValue]
        blocks = []
        if text:
            blocks = [{"type": "text", "text": self._short(text)}]
        blocks += [
            {
                "type": "tool_call",
                "id": call.id,
                "name": call.name,
                "input": self._input(call.input),
            }
            for call in calls
        ]
        yield {"role": "assistant", "content": blocks}

    def _input(self, given: Mapping[str, JSONValue]) -> JSONObject:
        """Copy a call's arguments; of those that are too long as a whole the texts are shortened, else a note stays."""
        if len(json.dumps(given, default=str)) <= self.limit:
            return dict(given)
        short = {
            key: self._short(value)
            for key, value in given.items()
            if isinstance(value, str)
        }
        # Numbers and lists cannot be shortened and stay what they are.
        if len(short) < len(given):
            return {**short, "left_out": "the other arguments are too long"}
        return {**short}

    def _short(self, text: str) -> str:
        return shortened(text, self.limit)


def _text(message: Message) -> str:
    """Return what a message says, with a note for what is no text; a document of text is its text."""
    return "\n".join(part for part in map(_part, message.blocks) if part).strip()


def _part(block: object) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, DocumentBlock) and block.source.get("type") == "text":
        return str(block.source.get("data"))
    if isinstance(block, (AudioBlock, DocumentBlock, ImageBlock, VideoBlock)):
        return _NOTES[block.type]
    return ""


def _results(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the results of a message of the role `tool`: those of its blocks, else itself."""
    blocks = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
    for block in blocks:
        output = block.output
        yield (
            block.tool_call_id,
            output if isinstance(output, str) else json.dumps(output, default=str),
        )
    if not blocks:
        yield message.tool_call_id or "", _text(message)
