"""What clients of OpenAI's two protocols send, as far as an agent can do something with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from amplifier.serving.errors import RequestError
from amplifier.serving.single_turns import Conversation
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import NO_EXTRAS

__all__ = [
    "ChatMessage",
    "ChatRequestBody",
    "MessagePart",
    "ResponseItem",
    "ResponseRequestBody",
    "StreamOptions",
]

_Extras: TypeAlias = Mapping[str, JSONValue]


@attrs.frozen(kw_only=True)
class MessagePart:
    """A part of a message; an agent reads those of text."""

    type: str
    text: str | None = None
    extras: _Extras = NO_EXTRAS


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
            [(one.role, _text(one.content)) for one in self.messages]
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
        messages = [("user", self.instructions)] if self.instructions else []
        if isinstance(self.input, str):
            messages.append(("user", self.input))
        else:
            messages += [(item.role, _text(item.content)) for item in self.input]
        return Conversation.of(messages)


def _refuse_tools(tools: Sequence[object] | None) -> None:
    if tools:
        raise RequestError(
            422, "invalid_request", "tools: an agent runs its own; send none"
        )


def _text(content: str | list[MessagePart]) -> str:
    if isinstance(content, str):
        return content
    for part in content:
        if part.text is None:
            raise RequestError(
                422,
                "invalid_request",
                f"content: no part of type {part.type!r:.40} is read",
            )
    return "".join(part.text or "" for part in content)
