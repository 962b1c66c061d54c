"""Requests, messages, blocks and answers as pydantic models, because modules subclass them.

Unknown fields stay: a message may carry what its vendor or its loop added.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from amplifier.compat.original.models import Cost

__all__ = [
    "ChatRequest",
    "ChatResponse",
    "ContentBlockUnion",
    "Degradation",
    "ImageBlock",
    "Message",
    "ReasoningBlock",
    "RedactedThinkingBlock",
    "ResponseFormat",
    "ResponseFormatJson",
    "ResponseFormatJsonSchema",
    "ResponseFormatText",
    "TextBlock",
    "ThinkingBlock",
    "ToolCall",
    "ToolCallBlock",
    "ToolResultBlock",
    "ToolSpec",
    "Usage",
    "Visibility",
]

Visibility: TypeAlias = Literal["internal", "developer", "user"]
"""Who should see a block."""


class _Model(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", protected_namespaces=()
    )


class TextBlock(_Model):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str
    visibility: Visibility | None = None


class ThinkingBlock(_Model):
    """A model's visible thinking."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str | None = None
    visibility: Visibility | None = None
    content: list[object] | None = None


class RedactedThinkingBlock(_Model):
    """Thinking that the vendor encrypted."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str
    visibility: Visibility | None = None


class ToolCallBlock(_Model):
    """A call that the model makes."""

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    input: dict[str, object]
    visibility: Visibility | None = None


class ToolResultBlock(_Model):
    """What a tool returned for a call."""

    type: Literal["tool_result"] = "tool_result"
    tool_call_id: str
    output: object
    visibility: Visibility | None = None


class ImageBlock(_Model):
    """An image."""

    type: Literal["image"] = "image"
    source: dict[str, object]
    visibility: Visibility | None = None


class ReasoningBlock(_Model):
    """A reasoning item of the vendors that return content and summaries apart."""

    type: Literal["reasoning"] = "reasoning"
    content: list[object]
    summary: list[object]
    visibility: Visibility | None = None


ContentBlockUnion: TypeAlias = Annotated[
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolCallBlock
    | ToolResultBlock
    | ImageBlock
    | ReasoningBlock,
    Field(discriminator="type"),
]
"""One block of a message; `type` says which."""


class Message(_Model):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "function", "tool"]
    content: str | list[ContentBlockUnion]
    name: str | None = None
    tool_call_id: str | None = None
    metadata: dict[str, object] | None = None


class ToolSpec(_Model):
    """A tool as the model sees it."""

    name: str
    parameters: dict[str, object]
    description: str | None = None


class ToolCall(_Model):
    """A call that an answer asks for."""

    id: str
    name: str
    arguments: dict[str, object]


class ResponseFormatText(BaseModel):
    """An answer in text."""

    type: Literal["text"] = "text"


class ResponseFormatJson(BaseModel):
    """An answer in any JSON."""

    type: Literal["json"] = "json"


class ResponseFormatJsonSchema(BaseModel):
    """An answer that fits a JSON Schema, which is written under the name `schema`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    type: Literal["json_schema"] = "json_schema"
    json_schema: dict[str, object] = Field(alias="schema")
    strict: bool | None = None


ResponseFormat: TypeAlias = Annotated[
    ResponseFormatText | ResponseFormatJson | ResponseFormatJsonSchema,
    Field(discriminator="type"),
]
"""What form an answer has."""


class ChatRequest(_Model):
    """One request to a model."""

    messages: list[Message]
    tools: list[ToolSpec] | None = None
    response_format: ResponseFormat | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    conversation_id: str | None = None
    stream: bool = False
    metadata: dict[str, object] | None = None
    model: str | None = None
    tool_choice: str | dict[str, object] | None = None
    stop: list[str] | None = None
    reasoning_effort: str | None = None
    timeout: float | None = None


class Usage(_Model):
    """Tokens that a call used, and its cost where it is known."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: Cost | None = None


class Degradation(BaseModel):
    """What a provider gave instead of what was asked, and why."""

    requested: str
    actual: str
    reason: str


class ChatResponse(_Model):
    """One answer of a model; providers subclass it to carry more."""

    content: list[ContentBlockUnion]
    tool_calls: list[ToolCall] | None = None
    usage: Usage | None = None
    degradation: Degradation | None = None
    finish_reason: str | None = None
    metadata: dict[str, object] | None = None
