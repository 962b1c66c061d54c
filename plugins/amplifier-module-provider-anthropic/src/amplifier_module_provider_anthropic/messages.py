"""A history in the API's words: roles, blocks, media, calls with their results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from amplifier_module_provider_anthropic.tools import call_id, tool_name
from amplifier_sdk.content import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    VendorBlock,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.values import NO_EXTRAS

__all__ = [
    "MESSAGE_ID",
    "MessagesBody",
    "has_thoughts",
    "media_source",
    "write_conversation",
]

MESSAGE_ID: Final = "anthropic:message_id"
"""The key of a message's metadata that says which answer of the API it is."""

_OPENING: Final = "(Earlier messages are not shown.)"
"""What is said where a history begins with an answer; the API wants a user's message first."""

_GIVEN: Final = frozenset({"document", "search_result", "container_upload"})
"""Blocks of the API that a person's messages and tools' results may hold."""

_TITLE: Final = 500
"""Characters of a document's title that the API takes."""

_ANSWERED: Final = ("server_tool_use", "_tool_result", "container_upload")
"""How the types of blocks end that the API's own tools leave in an answer."""

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


def has_thoughts(messages: Iterable[Message]) -> bool:
    """Tell whether the model thought in one of the messages."""
    return any(
        isinstance(block, (ThinkingBlock, RedactedThinkingBlock))
        for message in messages
        if message.role == "assistant"
        for block in message.blocks
    )


@attrs.frozen(kw_only=True)
class MessagesBody:
    """A history in the API's words: what stands beside the messages, and the messages."""

    system: list[str]
    messages: list[JSONObject]


def write_conversation(
    messages: Iterable[Message],
    *,
    with_thoughts: bool = True,
    with_late_system: bool = False,
) -> MessagesBody:
    """Write a history.

    A developer's message is a user's. Results that follow each other are one user's message. What says nothing, or
    is another vendor's, is left out. The same messages are always written the same, whatever follows them.

    Args:
        messages: the history; every call in it is answered directly.
        with_thoughts: whether what the model thought goes back to it.
        with_late_system: whether a system message that comes later stands where it came, so that what was before it
            stays as it is; otherwise all of them stand beside the messages.
    """
    writing = _Writing(with_late_system=with_late_system)
    for message in messages:
        if message.role == "system":
            writing.add_system(message.text)
        elif message.role == "tool":
            writing.add_results(_results(message))
        elif content := _content(message, with_thoughts=with_thoughts):
            writing.add("assistant" if message.role == "assistant" else "user", content)
    return writing.end()


@attrs.define(eq=False)
class _Writing:
    with_late_system: bool
    system: list[str] = attrs.field(factory=list, init=False)
    messages: list[JSONObject] = attrs.field(factory=list, init=False)
    late: list[str] = attrs.field(factory=list, init=False)
    results: list[JSONObject] | None = attrs.field(default=None, init=False)

    def add_system(self, text: str) -> None:
        if text.strip():
            (
                self.late if self.messages and self.with_late_system else self.system
            ).append(text)

    def add_results(self, found: list[JSONObject]) -> None:
        # the API wants the results of one answer in the message that follows it
        if self.results is None:
            self.results = []
            self.messages.append({"role": "user", "content": self.results})
        self.results += found

    def add(self, role: str, content: list[JSONObject]) -> None:
        # what comes between ends the run of results that share one message
        self.results = None
        if role == "assistant":
            self._place_late()
            # compaction may have cut the history down to an answer
            if not self.messages:
                self.messages.append({"role": "user", "content": [_text(_OPENING)]})
        self.messages.append({"role": role, "content": content})

    def end(self) -> MessagesBody:
        self._place_late()
        return MessagesBody(system=self.system, messages=self.messages)

    def _place_late(self) -> None:
        """Place the later system messages: the API takes them behind a user's message, before an answer."""
        # Elsewhere the API refuses it, so the text goes to the system's, where it
        # changes the beginning.
        if self.late and self.messages[-1]["role"] == "user":
            self.messages.append(
                {"role": "system", "content": [_text(text) for text in self.late]}
            )
        else:
            self.system += self.late
        self.late = []


def _content(message: Message, *, with_thoughts: bool) -> list[JSONObject]:
    if isinstance(message.content, str):
        if message.content.strip():
            return [_text(message.content)]
        return []
    if message.role != "assistant":
        return list(_given(message.content))
    written = [
        block
        for block in _answered(message)
        if with_thoughts or block["type"] not in _THOUGHTS
    ]
    # of an answer that was cut; the API takes none that ends so
    while written and written[-1]["type"] in _THOUGHTS:
        written.pop()
    return written


def _given(blocks: Iterable[ContentBlock]) -> Iterator[JSONObject]:
    """Write what a person said, or a tool returned."""
    for block in blocks:
        match block:
            case TextBlock() if block.text.strip():
                yield _text(block.text)
            case ImageBlock():
                yield {"type": "image", "source": media_source(block.source)}
            case DocumentBlock():
                yield _document(block)
            case ToolResultBlock():
                yield _result(
                    block.tool_call_id,
                    _output(block.output),
                    is_error=block.extras.get("is_error") is True,
                )
            case VendorBlock() if block.type in _GIVEN:
                yield _whole(block.type, block.extras)
            case _:
                pass


def _answered(message: Message) -> Iterator[JSONObject]:
    """Write what the model said; a thought without its signature is one that the API cannot read."""
    is_own = message.metadata is not None and MESSAGE_ID in message.metadata
    for block in message.blocks:
        match block:
            case TextBlock() if block.text.strip():
                yield _whole(
                    "text",
                    block.extras if is_own else _citations(block),
                    text=block.text,
                )
            case ThinkingBlock() if block.signature:
                yield _whole(
                    "thinking",
                    block.extras if is_own else NO_EXTRAS,
                    thinking=block.thinking,
                    signature=block.signature,
                )
            case RedactedThinkingBlock():
                yield _whole(
                    "redacted_thinking",
                    block.extras if is_own else NO_EXTRAS,
                    data=block.data,
                )
            case ToolCallBlock():
                extras = NO_EXTRAS
                if is_own:
                    extras = block.extras
                yield _whole(
                    "tool_use",
                    extras,
                    id=call_id(block.id),
                    name=tool_name(block.name),
                    input=block.input,
                )
            case VendorBlock() if is_own or block.type.endswith(_ANSWERED):
                yield _whole(block.type, block.extras)
            case _:
                pass


def _citations(block: TextBlock) -> Mapping[str, JSONValue]:
    if "citations" in block.extras:
        return {"citations": block.extras["citations"]}
    return NO_EXTRAS


def _whole(
    kind: str, extras: Mapping[str, JSONValue], **fields: JSONValue
) -> JSONObject:
    """Write a block; only the provider itself marks blocks for the cache."""
    block: JSONObject = {"type": kind, **fields}
    for key, value in extras.items():
        # a mark of an earlier request would count against the few that the API allows
        if key != "cache_control":
            block.setdefault(key, value)
    return block


def _document(block: DocumentBlock) -> JSONObject:
    name = block.source.get("name")
    title: JSONObject = {"title": name[:_TITLE]} if isinstance(name, str) else {}
    return _whole(
        "document",
        {**title, **block.extras},
        source=media_source(block.source, "application/pdf"),
    )


def _text(text: str) -> JSONObject:
    return {"type": "text", "text": text}


def _results(message: Message) -> list[JSONObject]:
    """Write a tool's message: the results that its blocks name, or its whole content as the result of its call.

    What stands beside results is part of the last one: the API takes nothing between results.
    """
    metadata = message.metadata or {}
    is_error = metadata.get("is_error") is True or metadata.get("synthesized") is True
    results = list(
        _given(block for block in message.blocks if isinstance(block, ToolResultBlock))
    )
    if not results:
        return [
            _result(message.tool_call_id or "", _blocks(message), is_error=is_error)
        ]
    if others := list(
        _given(
            block for block in message.blocks if not isinstance(block, ToolResultBlock)
        )
    ):
        said = results[-1].get("content")
        results[-1]["content"] = [
            *([_text(said)] if isinstance(said, str) else []),
            *others,
        ]
    if is_error:
        return [{**result, "is_error": True} for result in results]
    return results


def _blocks(message: Message) -> JSONValue:
    if isinstance(message.content, str):
        return message.content
    return list(_given(message.content))


def _result(id: str, content: JSONValue, *, is_error: bool) -> JSONObject:
    result: JSONObject = {"type": "tool_result", "tool_use_id": call_id(id)}
    # the API refuses a text of white space alone
    if content and not (isinstance(content, str) and not content.strip()):
        result["content"] = content
    if is_error:
        result["is_error"] = True
    return result


def _output(output: JSONValue) -> JSONValue:
    if output is None or isinstance(output, str):
        return output
    return json.dumps(output, ensure_ascii=False)


def media_source(
    source: Mapping[str, JSONValue], usual: str = "image/png"
) -> JSONObject:
    """Write the source of an image or a document; what is unknown goes as it is.

    Args:
        source: the block's. A `data:` address in it becomes the data that it holds.
        usual: the media type of data that name none.
    """
    match source:
        # The API fetches addresses itself and takes no `data:` among them.
        case {"url": str(url)} if url.startswith("data:"):
            head, _, data = url.removeprefix("data:").partition(",")
            return _data(head.partition(";")[0] or usual, data)
        case {"url": str(url)}:
            return {"type": "url", "url": url}
        case {"type": "text", "data": str(text)}:
            return {"type": "text", "media_type": "text/plain", "data": text}
        case {"data": str(data)}:
            kind = source.get("media_type")
            return _data(kind if isinstance(kind, str) else usual, data)
        case {"file_id": str(id)}:
            return {"type": "file", "file_id": id}
        case _:
            return dict(source)


def _data(media_type: str, data: str) -> JSONObject:
    return {"type": "base64", "media_type": media_type, "data": data}
