"""What clients of OpenAI's two protocols send, as far as an agent can do something with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from amplifier.serving.errors import RequestError
from amplifier.serving.prompts import media_of_url
from amplifier.serving.single_turns import Conversation
from amplifier_sdk.content import TextBlock
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.media import MediaBlock, Prompt
from amplifier_sdk.values import NO_EXTRAS

__all__ = [
    "AudioData",
    "ChatMessage",
    "ChatRequestBody",
    "FileData",
    "ImageURL",
    "MessagePart",
    "ResponseItem",
    "ResponseRequestBody",
    "StreamOptions",
]

_Extras: TypeAlias = Mapping[str, JSONValue]


@attrs.frozen(kw_only=True)
class ImageURL:
    """Where an image is: a `data:` address."""

    url: str
    extras: _Extras = NO_EXTRAS


@attrs.frozen(kw_only=True)
class AudioData:
    """A recording in base64."""

    data: str
    extras: _Extras = NO_EXTRAS


@attrs.frozen(kw_only=True)
class FileData:
    """A document in a `data:` address."""

    file_data: str | None = None
    filename: str | None = None
    extras: _Extras = NO_EXTRAS


@attrs.frozen(kw_only=True)
class MessagePart:
    """A part of a message in either protocol: a text, or media in a `data:` address."""

    type: str
    text: str | None = None
    image_url: str | ImageURL | None = None
    input_audio: AudioData | None = None
    file: FileData | None = None
    filename: str | None = None
    file_data: str | None = None
    extras: _Extras = NO_EXTRAS

    def block(self) -> TextBlock | MediaBlock:
        """Return the part as the model gets it.

        Raises:
            RequestError: it is of a type that no agent reads, or its data are not of their kind.
        """
        match self:
            case MessagePart(text=str(text)):
                return TextBlock(text=text)
            case (
                MessagePart(image_url=str(url))
                | MessagePart(image_url=ImageURL(url=url))
            ):
                return media_of_url("image", url)
            case MessagePart(input_audio=AudioData(data=data)):
                return media_of_url("audio", f"data:audio/wav;base64,{data}")
            case MessagePart(file=FileData(file_data=str(url), filename=name)) | (
                MessagePart(file_data=str(url), filename=name)
            ):
                return media_of_url("document", url, name)
            case _:
                problem = f"content: no part of type {self.type!r:.40} is read"
                raise RequestError(422, "invalid_request", problem)


@attrs.frozen(kw_only=True)
class ChatMessage:
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[MessagePart]
    extras: _Extras = NO_EXTRAS


@attrs.frozen(kw_only=True)
class StreamOptions:
    """What a stream of a chat holds besides the text."""

    include_usage: bool | None = None
    extras: _Extras = NO_EXTRAS


@attrs.frozen(kw_only=True)
class ChatRequestBody:
    """The body of `/v1/chat/completions`; other keys, such as `temperature`, have no effect."""

    messages: list[ChatMessage]
    model: str = ""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[JSONValue] | None = None
    n: int | None = None
    extras: _Extras = NO_EXTRAS

    def conversation(self) -> Conversation:
        """Return the messages.

        Raises:
            RequestError: it wants what an agent cannot do.
        """
        _refuse_tools(self.tools)
        if self.n not in (None, 1):
            raise RequestError(422, "invalid_request", "n: an agent gives one answer")
        return Conversation.of(
            [(one.role, _said(one.content)) for one in self.messages]
        )


@attrs.frozen(kw_only=True)
class ResponseItem:
    """A message among the items of a response's input."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[MessagePart]
    type: Literal["message"] = "message"
    extras: _Extras = NO_EXTRAS


@attrs.frozen(kw_only=True)
class ResponseRequestBody:
    """The body of `/v1/responses`; other keys have no effect."""

    input: str | list[ResponseItem]
    model: str = ""
    instructions: str | None = None
    stream: bool | None = None
    tools: list[JSONValue] | None = None
    previous_response_id: str | None = None
    extras: _Extras = NO_EXTRAS

    def conversation(self) -> Conversation:
        """Return the messages.

        Raises:
            RequestError: it wants what an agent cannot do.
        """
        _refuse_tools(self.tools)
        if self.previous_response_id is not None:
            raise RequestError(
                422,
                "invalid_request",
                "previous_response_id: no response is stored; send the whole conversation",
            )
        messages: list[tuple[str, Prompt]] = (
            [("user", self.instructions)] if self.instructions else []
        )
        if isinstance(self.input, str):
            messages.append(("user", self.input))
        else:
            messages += [(item.role, _said(item.content)) for item in self.input]
        return Conversation.of(messages)


def _refuse_tools(tools: Sequence[object] | None) -> None:
    if tools:
        raise RequestError(
            422, "invalid_request", "tools: an agent runs its own; send none"
        )


def _said(content: str | list[MessagePart]) -> Prompt:
    if isinstance(content, str):
        return content
    blocks = [part.block() for part in content]
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    # the parts of a text are one text
    if len(texts) == len(blocks):
        return "".join(texts)
    return blocks
