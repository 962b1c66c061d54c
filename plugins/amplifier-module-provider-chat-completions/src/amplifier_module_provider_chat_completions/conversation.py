"""Messages in the words of the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, assert_never

import attrs

from amplifier_module_provider_chat_completions.media import SHOWN, media_part
from amplifier_sdk.content import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = ["write_messages"]

_BELOW: Final = "[Its {what} are in the next message of the user.]"
_RETURNED: Final = "[The {what} that the tool call {id} returned:]"


def write_messages(
    messages: Iterable[Message], *, sends_reasoning: bool
) -> tuple[list[JSONObject], list[str]]:
    """Write messages, and name what had to be left out.

    Args:
        messages: with every call answered directly behind it.
        sends_reasoning: whether a model's thinking goes back with its answers.

    Raises:
        InvalidRequestError: media have no form in the protocol.
    """
    writer = _Writer(sends_reasoning)
    for message in messages:
        writer.add(message)
    return writer.end(), writer.left_out


@attrs.define(eq=False)
class _Writer:
    sends_reasoning: bool
    left_out: list[str] = attrs.field(factory=list)
    _written: list[JSONObject] = attrs.field(factory=list, init=False)
    _returned: list[JSONValue] = attrs.field(factory=list, init=False)

    def add(self, message: Message) -> None:
        # results must follow their calls at once, so images wait for the last of them
        if message.role != "tool":
            self._place_returned()
        match message.role:
            case "system":
                self._written.append(
                    {"role": "system", "content": self._plain(message)}
                )
            # a developer's holds what others wrote: it has no rank above the user's
            case "user" | "developer":
                self._written.append(
                    {"role": "user", "content": self._content(message)}
                )
            case "assistant":
                self._written += self._answer(message)
            case "tool":
                self._written += self._results(message)
            case _:
                assert_never(message.role)

    def end(self) -> list[JSONObject]:
        """Return what was written."""
        self._place_returned()
        return self._written

    def _place_returned(self) -> None:
        """Show the media of tools' results, and what stands beside results, behind the last: they are texts alone."""
        if self._returned:
            self._written.append({"role": "user", "content": self._returned})
            self._returned = []

    def _answer(self, message: Message) -> Iterator[JSONObject]:
        """Write what the model said, unless nothing of it has words here: servers refuse answers that say nothing."""
        calls: list[JSONValue] = [
            _call(block) for block in message.blocks if isinstance(block, ToolCallBlock)
        ]
        text = self._plain(
            message, ToolCallBlock, ThinkingBlock, RedactedThinkingBlock, ReasoningBlock
        )
        thinking = "".join(
            block.thinking
            for block in message.blocks
            if isinstance(block, ThinkingBlock)
        )
        more: JSONObject
        more = {}
        if thinking and self.sends_reasoning:
            more = {"reasoning_content": thinking}
        if calls:
            more["tool_calls"] = calls
        if text or more or not message.blocks:
            yield {
                "role": "assistant",
                # With calls the protocol wants null in place of an empty text.
                "content": text or (None if calls else ""),
                **more,
            }

    def _results(self, message: Message) -> Iterator[JSONObject]:
        """Write one message for each result; a message without result blocks is itself one."""
        results = [
            block for block in message.blocks if isinstance(block, ToolResultBlock)
        ]
        if not results:
            yield {
                "role": "tool",
                "tool_call_id": message.tool_call_id,
                "content": self._returned_text(message),
            }
            return
        for result in results:
            yield {
                "role": "tool",
                "tool_call_id": result.tool_call_id,
                "content": self._output(result.output),
            }
        beside = (
            block for block in message.blocks if not isinstance(block, ToolResultBlock)
        )
        self._returned += [
            part for block in beside if (part := self._part(block)) is not None
        ]

    def _returned_text(self, message: Message) -> str:
        """Return a result as text that says where its media are, and keep those for the message that shows them."""
        shown = [block for block in message.blocks if isinstance(block, SHOWN)]
        if not shown:
            return self._plain(message)
        text = self._plain(message, *SHOWN)
        what = "images"
        if not all(isinstance(block, ImageBlock) for block in shown):
            what = "media"
        below = _BELOW.format(what=what)
        self._returned.append(
            {
                "type": "text",
                "text": _RETURNED.format(what=what, id=message.tool_call_id),
            }
        )
        self._returned += map(media_part, shown)
        if text:
            return f"{text}\n{below}"
        return below

    def _output(self, output: JSONValue) -> str:
        if isinstance(output, str):
            return output
        if output is None:
            return ""
        return json.dumps(output, ensure_ascii=False)

    def _content(self, message: Message) -> JSONValue:
        """Write a person's words: as one text, or in parts when there is more than text."""
        if not any(isinstance(block, SHOWN) for block in message.blocks):
            return self._plain(message)
        return [
            part for block in message.blocks if (part := self._part(block)) is not None
        ]

    def _part(self, block: ContentBlock) -> JSONObject | None:
        match block:
            case TextBlock():
                return {"type": "text", "text": block.text}
            case ImageBlock() | AudioBlock() | DocumentBlock():
                return media_part(block)
            case _:
                self.left_out.append(block.type)
                return None

    def _plain(self, message: Message, *dropped: type[ContentBlock]) -> str:
        """Return the text; what else there is is left out, and named unless it is of the dropped kinds."""
        self.left_out += [
            block.type
            for block in message.blocks
            if not isinstance(block, (TextBlock, *dropped))
        ]
        return message.text


def _call(block: ToolCallBlock) -> JSONObject:
    arguments = json.dumps(block.input, ensure_ascii=False)
    return {
        "id": block.id,
        "type": "function",
        "function": {"name": block.name, "arguments": arguments},
    }
