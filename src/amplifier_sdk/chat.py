"""What a provider is asked and what it answers.

Source: the provider contract (`ChatRequest`, `ChatResponse`, `ToolCall`, `Usage`, `ProviderInfo`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal, TypeAlias, TypeVar

import attrs

from amplifier_sdk._fields import blocks, strings, strings_or_none
from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    block_to_dict,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.values import NO_EXTRAS, Value

__all__ = [
    "COMPLETE_FINISH_REASONS",
    "ChatRequest",
    "ChatResponse",
    "ConfigField",
    "Degradation",
    "FinishReason",
    "ModelInfo",
    "Pricing",
    "ProviderInfo",
    "ResponseFormat",
    "ToolCall",
    "ToolChoice",
    "ToolSpec",
    "Usage",
]

NumberT = TypeVar("NumberT", int, Decimal)

ToolChoice: TypeAlias = str | Mapping[str, JSONValue]
"""`"auto"`, `"none"`, `"required"`, or `{"type": "tool", "name": NAME}` to force one tool."""

ResponseFormat: TypeAlias = Mapping[str, JSONValue]
"""`{"type": "text"}`, `{"type": "json"}` or `{"type": "json_schema", "schema": …}`."""

FinishReason: TypeAlias = Literal[
    "stop", "tool_calls", "length", "content_filter", "error"
]
"""Why a model stopped."""

COMPLETE_FINISH_REASONS: Final = frozenset({"stop", "tool_calls"})
"""The reasons after which an answer is complete. No tool runs from any other."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolSpec(Value):
    """A tool as the model sees it; `parameters` is the JSON Schema of its arguments."""

    name: str
    parameters: Mapping[str, JSONValue]
    description: str | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolCall(Value):
    """A tool call the model asks for.

    When the model's arguments could not be read as a JSON object, `arguments` is empty, `raw_arguments`
    holds its text and `problem` says what is wrong; the kernel then answers with an error result and
    runs nothing.
    """

    id: str
    name: str
    arguments: JSONObject = attrs.field(factory=dict)
    raw_arguments: str | None = None
    problem: str | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    @property
    def input(self) -> JSONObject:
        """The arguments, under the name that content blocks use."""
        return self.arguments

    @property
    def shown_arguments(self) -> JSONObject:
        """The arguments as the history shows them: text that could not be read is no empty object."""
        if self.problem is None:
            return self.arguments
        return {"raw_arguments": self.raw_arguments}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Usage(Value):
    """Tokens that one provider call used, and its cost in US dollars where it is known."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: Decimal | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    def __add__(self, other: Usage) -> Usage:
        """Add two calls' usage; a part that neither knows stays unknown."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            reasoning_tokens=_add(self.reasoning_tokens, other.reasoning_tokens),
            cache_read_tokens=_add(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens=_add(self.cache_write_tokens, other.cache_write_tokens),
            cost_usd=_add(self.cost_usd, other.cost_usd),
        )


def _add(left: NumberT | None, right: NumberT | None) -> NumberT | None:
    if left is None:
        return right
    if right is None:
        return left
    return left + right


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Degradation(Value):
    """What a provider gave instead of what was asked, and why."""

    requested: str
    actual: str
    reason: str

    def __str__(self) -> str:
        return f"{self.actual} instead of {self.requested}: {self.reason}"

    @classmethod
    def of_all(cls, losses: Sequence[Degradation]) -> Degradation | None:
        """Return several as the one that an answer carries; `None` when there are none."""
        if len(losses) < 2:
            if losses:
                return losses[0]
            return None
        return cls(
            requested="; ".join(loss.requested for loss in losses),
            actual="; ".join(loss.actual for loss in losses),
            reason="; ".join(loss.reason for loss in losses),
        )


# Made in every call: slots would double what that costs.
@attrs.frozen(kw_only=True, slots=False, eq=False, repr=False)
class ChatRequest(Value):
    """One request to a model.

    `messages` may be a view that converts on demand: read it in order, do not keep it. `None` means that
    the provider's default holds. `timeout` is in seconds. `stream` has no effect: who wants an answer in pieces
    calls the provider's method `stream`.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] | None = None
    response_format: ResponseFormat | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    conversation_id: str | None = None
    stream: bool = False
    metadata: Mapping[str, JSONValue] | None = None
    model: str | None = None
    tool_choice: ToolChoice | None = None
    stop: Sequence[str] | None = None
    reasoning_effort: str | None = None
    timeout: float | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    @property
    def forced_tool(self) -> str | None:
        """The tool that `tool_choice` forces by name, or `None`."""
        if isinstance(self.tool_choice, Mapping):
            name = self.tool_choice.get("name")
            if isinstance(name, str):
                return name
            return None
        return None


# Made in every call: slots would double what that costs.
@attrs.frozen(kw_only=True, slots=False, eq=False, repr=False)
class ChatResponse(Value):
    """One answer of a model.

    The answer is complete only when `finish_reason` is `None`, `"stop"` or `"tool_calls"`.
    """

    content: tuple[ContentBlock, ...] = attrs.field(default=(), converter=blocks)
    tool_calls: Sequence[ToolCall] | None = None
    usage: Usage | None = None
    degradation: Degradation | None = None
    finish_reason: str | None = None
    metadata: Mapping[str, JSONValue] | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(
            block.text for block in self.content if isinstance(block, TextBlock)
        )

    @property
    def thinking(self) -> str:
        """What of the model's thinking can be read, joined."""
        thoughts = (
            block
            for block in self.content
            if isinstance(block, (ThinkingBlock, ReasoningBlock))
        )
        return "".join(
            block.thinking if isinstance(block, ThinkingBlock) else block.text
            for block in thoughts
        )

    @property
    def is_complete(self) -> bool:
        """Whether the model finished: a cut or filtered answer must not run a tool."""
        return (
            self.finish_reason is None or self.finish_reason in COMPLETE_FINISH_REASONS
        )

    def without_tool_calls(self) -> ChatResponse:
        """Return the answer with its text alone, for a turn that may run no tool any more."""
        content = [
            block for block in self.content if not isinstance(block, ToolCallBlock)
        ]
        return attrs.evolve(self, content=content, tool_calls=None)

    def to_message(self) -> MessageDict:
        """Write the answer as the assistant message that the context stores.

        The calls stand among the blocks and once more under `tool_calls`, where modules written for
        the original look for them.
        """
        calls = self.tool_calls
        blocks: list[JSONValue] = list(map(block_to_dict, self.content))
        message: MessageDict = {"role": "assistant", "content": blocks}
        if calls:
            present = {
                block.id for block in self.content if isinstance(block, ToolCallBlock)
            }
            for call in calls:
                if call.id not in present:
                    shown = ToolCallBlock(
                        id=call.id, name=call.name, input=call.shown_arguments
                    )
                    blocks.append(block_to_dict(shown))
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "tool": call.name,
                    "name": call.name,
                    "arguments": call.shown_arguments,
                }
                for call in calls
            ]
        if self.metadata is not None:
            message["metadata"] = self.metadata
        return message


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Pricing(Value):
    """Prices per million tokens; `currency` is an ISO 4217 code."""

    input_per_million: Decimal
    output_per_million: Decimal
    cache_read_per_million: Decimal | None = None
    cache_write_per_million: Decimal | None = None
    currency: str = "USD"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ModelInfo(Value):
    """A model that a provider offers; windows are in tokens."""

    id: str
    display_name: str
    context_window: int
    max_output_tokens: int
    capabilities: tuple[str, ...] = attrs.field(default=(), converter=strings)
    defaults: Mapping[str, JSONValue] = attrs.field(factory=dict)
    pricing: Pricing | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ConfigField(Value):
    """One setting a provider asks a person for, for example in a set-up dialogue."""

    id: str
    display_name: str
    prompt: str
    field_type: Literal["text", "secret", "choice", "boolean"] = "text"
    env_var: str | None = None
    choices: tuple[str, ...] | None = attrs.field(
        default=None, converter=strings_or_none
    )
    default: str | None = None
    show_when: Mapping[str, JSONValue] | None = None
    required: bool = True
    requires_model: bool = False


def _config_fields(items: Iterable[ConfigField]) -> tuple[ConfigField, ...]:
    return tuple(items)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ProviderInfo(Value):
    """What a provider is: its name for people, the credentials it reads, its defaults.

    `defaults` may hold `model`, `context_window` and `max_output_tokens`; context managers read the
    latter two. `media` are the types of what a prompt may show, such as `image/png`.
    """

    id: str
    display_name: str
    credential_env_vars: tuple[str, ...] = attrs.field(default=(), converter=strings)
    capabilities: tuple[str, ...] = attrs.field(default=(), converter=strings)
    media: tuple[str, ...] = attrs.field(default=(), converter=strings)
    defaults: Mapping[str, JSONValue] = attrs.field(factory=dict)
    config_fields: tuple[ConfigField, ...] = attrs.field(
        default=(), converter=_config_fields
    )
