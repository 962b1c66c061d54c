"""A conversation as the API's list of input items.

The leading system messages are the instructions. System messages that come later stay where they are, as items: so
what was sent before them keeps its bytes, and the vendor's cache of prompts holds. Developer texts are the
user's, before the message that they belong to: they hold what others wrote, and this vendor gives its own role
`developer` a rank above the user's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import Final, TypeAlias

from amplifier_kit.vendors.responses._fields import text
from amplifier_kit.vendors.responses.names import wire_id, wire_name
from amplifier_sdk.content import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    VendorBlock,
)
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = [
    "PHASE",
    "VENDOR_ITEMS",
    "instructions_of",
    "items_of",
    "without_instructions",
]

PHASE: Final = "openai:phase"
"""The key of a text block's extras that says whether the text is a commentary or the final answer."""

VENDOR_ITEMS: Final = frozenset(
    {
        "code_interpreter_call",
        "compaction",
        "computer_call",
        "custom_tool_call",
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "mcp_approval_request",
        "mcp_call",
        "mcp_list_tools",
        "web_search_call",
    }
)
"""Output items of the API's own tools: they are stored as vendor blocks and go back as they came."""

_Items: TypeAlias = Iterator[JSONObject]


def instructions_of(messages: Iterable[Message]) -> str | None:
    """Return the leading system messages as one text, or `None` where there are none."""
    leading = takewhile(_is_system, messages)
    return "\n\n".join(message.text for message in leading if message.text) or None


def without_instructions(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages after the leading system messages."""
    return dropwhile(_is_system, messages)


def _is_system(message: Message) -> bool:
    return message.role == "system"


def items_of(
    messages: Iterable[Message], *, is_stored: bool, with_reasoning: bool = True
) -> _Items:
    """Write messages as items; a message without content is none.

    Args:
        messages: without the leading system messages, unless the conversation has begun.
        is_stored: whether answers are stored by the vendor: only then can reasoning go back by its id alone.
        with_reasoning: whether reasoning of earlier answers goes back.

    Raises:
        InvalidRequestError: a message cannot be written; the text says which.
    """
    for message in messages:
        match message.role:
            case "assistant":
                written = list(
                    _assistant(
                        message.blocks,
                        is_stored=is_stored,
                        with_reasoning=with_reasoning,
                    )
                )
                # the API takes no reasoning at the end, where it led to nothing
                while written and written[-1]["type"] == "reasoning":
                    written.pop()
                yield from written
            case "tool":
                yield from _results(message)
            case "developer":
                yield from _spoken("user", message.blocks)
            case role:
                yield from _spoken(role, message.blocks)


def _spoken(role: str, blocks: Iterable[ContentBlock]) -> _Items:
    """Write what a person or the application says; results of tools among it are items of their own."""
    parts: list[JSONValue] = []
    for block in blocks:
        match block:
            case TextBlock() if block.text:
                parts.append({"type": "input_text", "text": block.text})
            case ImageBlock():
                parts.append(_image(block))
            case DocumentBlock():
                parts.append(_file(block))
            case ToolResultBlock():
                yield _result(block.tool_call_id, _output(block.output))
            case _:  # nothing that a person says to this vendor
                pass
    if parts:
        yield {"type": "message", "role": role, "content": parts}


def _assistant(
    blocks: Sequence[ContentBlock], *, is_stored: bool, with_reasoning: bool
) -> _Items:
    spoken: list[TextBlock] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            # commentary and answer are messages of their own to the API
            if spoken and spoken[-1].extras.get(PHASE) != block.extras.get(PHASE):
                yield from _said(spoken)
                spoken = []
            spoken.append(block)
            continue
        item = _item(block, is_stored=is_stored, with_reasoning=with_reasoning)
        if item is not None:
            yield from _said(spoken)
            spoken = []
            yield item
    yield from _said(spoken)


def _said(blocks: Sequence[TextBlock]) -> _Items:
    """Write text blocks that follow each other as one message."""
    said = "".join(block.text for block in blocks)
    if not said:
        return
    item: JSONObject = {"type": "message", "role": "assistant", "content": said}
    phase = text(blocks[0].extras, PHASE)
    yield {**item, "phase": phase} if phase else item


def _item(
    block: ContentBlock, *, is_stored: bool, with_reasoning: bool
) -> JSONObject | None:
    match block:
        case ToolCallBlock():
            return {
                "type": "function_call",
                "call_id": wire_id(block.id),
                "name": wire_name(block.name),
                "arguments": _json(block.input),
            }
        case ReasoningBlock() if with_reasoning:
            return _reasoning(block, is_stored=is_stored)
        case VendorBlock() if block.type in VENDOR_ITEMS:
            return {"type": block.type, **block.extras}
        case _:  # another vendor's thinking and blocks
            return None


def _reasoning(block: ReasoningBlock, *, is_stored: bool) -> JSONObject | None:
    """Write reasoning that the vendor can read again: encrypted, or stored under its id."""
    identity = text(block.extras, "id")
    encrypted = text(block.extras, "encrypted_content")
    # the API refuses reasoning that it can neither decrypt nor find
    if not identity or not (encrypted or is_stored):
        return None
    item: JSONObject = {
        "type": "reasoning",
        "id": identity,
        "summary": list(block.summary),
    }
    if block.content:
        item["content"] = list(block.content)
    if not encrypted:
        return item
    return {**item, "encrypted_content": encrypted}


def _results(message: Message) -> _Items:
    """Write what tools returned: the message, or the blocks in it that name their call; what else there is follows.

    A call has one result: what stands beside it is said by the user.
    """
    if any(isinstance(block, ToolResultBlock) for block in message.blocks):
        yield from _spoken("user", message.blocks)
        return
    # an answer to no call would be refused by the vendor, in words that name no
    # message
    if message.tool_call_id is None:
        raise InvalidRequestError(
            "A message of the role 'tool' names no call: give it a tool_call_id"
        )
    yield _result(message.tool_call_id, _joined(message.blocks))


def _result(call_id: str, output: JSONValue) -> JSONObject:
    return {
        "type": "function_call_output",
        "call_id": wire_id(call_id),
        "output": output,
    }


def _joined(blocks: Sequence[ContentBlock]) -> JSONValue:
    """Write a result: one text, or a list where there are images or documents."""
    if not any(isinstance(block, (ImageBlock, DocumentBlock)) for block in blocks):
        return "".join(block.text for block in blocks if isinstance(block, TextBlock))
    parts: list[JSONValue] = []
    for block in blocks:
        match block:
            case TextBlock():
                parts.append({"type": "input_text", "text": block.text})
            case ImageBlock():
                parts.append(_image(block))
            case DocumentBlock():
                parts.append(_file(block))
            case _:
                pass
    return parts


def _output(value: JSONValue) -> str:
    if isinstance(value, str):
        return value
    return _json(value)


def _json(value: JSONValue | Mapping[str, JSONValue]) -> str:
    """Write JSON as the models do: without blanks, with characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)


def _image(block: ImageBlock) -> JSONObject:
    source = block.source
    detail = text(source, "detail") or "auto"
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            return {
                "type": "input_image",
                "detail": detail,
                "image_url": f"data:{media_type};base64,{data}",
            }
        case {"type": "url", "url": str(url)}:
            return {"type": "input_image", "detail": detail, "image_url": url}
        case {"type": "file", "file_id": str(file_id)}:
            return {"type": "input_image", "detail": detail, "file_id": file_id}
        case _:
            raise InvalidRequestError(
                "An image's source is of type 'base64' with its 'media_type' and 'data', 'url' with its 'url', or "
                f"'file' with its 'file_id'; got the type {source.get('type')!r} with {', '.join(sorted(source))}"
            )


def _file(block: DocumentBlock) -> JSONObject:
    """Write a document; the API names each one whose data it is sent."""
    match block.source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            return {
                "type": "input_file",
                "filename": text(block.source, "name") or "document.pdf",
                "file_data": f"data:{media_type};base64,{data}",
            }
        case {"type": "url", "url": str(url)}:
            return {"type": "input_file", "file_url": url}
        case {"type": "file", "file_id": str(file_id)}:
            return {"type": "input_file", "file_id": file_id}
        case source:
            raise InvalidRequestError(
                "A document's source is of type 'base64' with its 'media_type' and 'data', 'url' with its 'url', or "
                f"'file' with its 'file_id'; got the type {source.get('type')!r} with {', '.join(sorted(source))}"
            )
