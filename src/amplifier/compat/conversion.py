"""Requests, messages, answers and what describes providers, from the SDK's values to the original's models and back.

What a request carries is converted once for each message: `RequestWriter` remembers what it
made of a history, of which the next request is nearly always the continuation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast, overload

from pydantic import BaseModel

from amplifier.compat.original import message_models, models
from amplifier.compat.plain import plain_copy
from amplifier_sdk import chat
from amplifier_sdk.content import (
    ContentBlock,
    TextBlock,
    block_from_dict,
    block_to_dict,
)
from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = [
    "RequestWriter",
    "native_block",
    "native_call",
    "native_description",
    "native_message",
    "native_request",
    "native_response",
    "original_block",
    "original_call",
    "original_info",
    "original_message",
    "original_model",
    "original_response",
]

_WORDS: Final[Mapping[str, str]] = {
    "stop": "stop end_turn stop_sequence completed complete",
    "tool_calls": "tool_calls tool_use function_call",
    "length": """
        length max_tokens max_output_tokens incomplete model_length token_limit
        context_window_exceeded model_context_window_exceeded
    """,
    "content_filter": """
        content_filter content_filtered refusal safety recitation blocklist spii
        prohibited_content image_safety guardrail_intervened
    """,
    "error": "error failed cancelled malformed_function_call malformed_model_output",
}
FINISH_REASONS: Final[Mapping[str, str]] = {
    word: reason for reason, words in _WORDS.items() for word in words.split()
}
"""The vendors' words for why an answer ended, in small letters, and the SDK's. Original providers pass them on."""

T = TypeVar("T")
_Slice: TypeAlias = "slice[int | None, int | None, int | None]"
_ORIGINAL: Final = "_original"
"""Where an answer has the one that it was made of."""

_BLOCKS: Final[Mapping[str, type[BaseModel]]] = {
    "text": message_models.TextBlock,
    "thinking": message_models.ThinkingBlock,
    "redacted_thinking": message_models.RedactedThinkingBlock,
    "tool_call": message_models.ToolCallBlock,
    "tool_result": message_models.ToolResultBlock,
    "image": message_models.ImageBlock,
    "reasoning": message_models.ReasoningBlock,
}


# -- what a provider is asked


class RequestWriter:
    """Writes requests for one original provider."""

    def __init__(self) -> None:
        self._read: Sequence[object] = []
        self._written: list[message_models.Message] = []
        self._specs: Sequence[chat.ToolSpec] | None = None
        self._tools: list[message_models.ToolSpec] | None = None

    def write(self, request: chat.ChatRequest) -> message_models.ChatRequest:
        """Return a request as the original's model; its list of messages is its own."""
        return message_models.ChatRequest.model_construct(
            messages=self._messages(request.messages),
            tools=self._specified(request.tools),
            response_format=_response_format(request.response_format),
            temperature=request.temperature,
            top_p=request.top_p,
            max_output_tokens=request.max_output_tokens,
            conversation_id=request.conversation_id,
            stream=False,
            metadata=_dict_or_none(request.metadata),
            model=request.model,
            tool_choice=cast(
                "str | dict[str, object] | None", plain_copy(request.tool_choice)
            ),
            stop=None if request.stop is None else list(request.stop),
            reasoning_effort=request.reasoning_effort,
            timeout=request.timeout,
            **request.extras,  # type: ignore[arg-type]  # fields that nobody here knows
        )

    def _messages(self, messages: Sequence[Message]) -> list[message_models.Message]:
        """Return the messages as models, of which those of the last request are the very same."""
        # a loop of the original asks a provider of the original: nothing is converted
        if isinstance(messages, _OriginalMessages):
            return list(messages.originals)
        # what a history stores is compared without reading it
        read: Sequence[object] | None = getattr(messages, "stored", None)
        if read is None:
            read = messages = list(messages)
        count = len(self._read)
        # a list compares its items by identity first, in C
        if len(read) >= count and read[:count] == self._read:
            self._written.extend(map(original_message, messages[count:]))
        else:
            known = dict(zip(map(id, self._read), self._written, strict=True))
            self._written = [
                known.get(id(key)) or original_message(message)
                for key, message in zip(read, messages, strict=True)
            ]
        self._read = read
        return self._written.copy()

    def _specified(
        self, specs: Sequence[chat.ToolSpec] | None
    ) -> list[message_models.ToolSpec] | None:
        if not specs:
            return None
        # a loop makes its specs once a turn, so most requests have those of the last
        if self._tools is None or specs != self._specs:
            self._specs = specs
            self._tools = [
                message_models.ToolSpec.model_construct(
                    name=spec.name,
                    parameters=cast("dict[str, object]", plain_copy(spec.parameters)),
                    description=spec.description,
                    **spec.extras,  # type: ignore[arg-type]  # as above
                )
                for spec in specs
            ]
        return self._tools.copy()


def original_message(message: Message) -> message_models.Message:
    """Return a message as the original's model."""
    content: object = message.content
    if not isinstance(content, str):
        content = [original_block(block) for block in message.content]  # type: ignore[arg-type]  # no text, so blocks
    return message_models.Message.model_construct(
        role=message.role,
        content=content,
        name=message.name,
        tool_call_id=message.tool_call_id,
        metadata=_dict_or_none(message.metadata),
        **cast("dict[str, object]", plain_copy(message.extras)),  # type: ignore[arg-type]
    )


def original_block(block: ContentBlock) -> BaseModel:
    """Return a block as the original's model; one of a vendor's own type is text for it."""
    fields = cast("dict[str, object]", plain_copy(block_to_dict(block)))
    model = _BLOCKS.get(block.type)
    # the original's union of blocks is closed: an unknown type would be an error there
    if model is None:
        return message_models.TextBlock(text=str(fields))
    return model.model_construct(**fields)  # type: ignore[arg-type]  # the block's own


def _response_format(asked: chat.ResponseFormat | None) -> object:
    if asked is None:
        return None
    fields = dict(asked)
    match fields.get("type"):
        case "json_schema":
            return message_models.ResponseFormatJsonSchema.model_validate(fields)
        case "json":
            return message_models.ResponseFormatJson()
        case _:
            return message_models.ResponseFormatText()


def native_request(request: object) -> chat.ChatRequest:
    """Return a request of the original as the SDK's; a request of the SDK stays as it is.

    Raises:
        ValueError: a message has a role or a content that no message can have.
    """
    if isinstance(request, chat.ChatRequest):
        return request
    given = cast("message_models.ChatRequest", request)
    response_format = given.response_format
    return chat.ChatRequest(
        messages=_OriginalMessages(given.messages),
        tools=[_native_spec(tool) for tool in given.tools] if given.tools else None,
        response_format=_dumped(response_format),
        temperature=given.temperature,
        top_p=given.top_p,
        max_output_tokens=given.max_output_tokens,
        conversation_id=given.conversation_id,
        metadata=_json(given.metadata),
        model=given.model,
        tool_choice=cast("chat.ToolChoice | None", plain_copy(given.tool_choice)),
        stop=given.stop,
        reasoning_effort=given.reasoning_effort,
        timeout=given.timeout,
        extras=_extras(given),
    )


class _OriginalMessages(Sequence[Message]):
    """The messages of a loop of the original, each of which is converted when somebody reads it."""

    __slots__ = ("_read", "originals")

    def __init__(self, originals: Sequence[message_models.Message]) -> None:
        self.originals = originals
        self._read: dict[int, Message] = {}

    def __len__(self) -> int:
        return len(self.originals)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: _Slice) -> list[Message]: ...
    def __getitem__(self, index: int | _Slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        message = self._read.get(at)
        if message is None:
            message = self._read[at] = native_message(self.originals[at])
        return message


def native_message(message: object) -> Message:
    """Return a message of the original as the SDK's.

    Raises:
        ValueError: it has a role or a content that no message can have.
    """
    if isinstance(message, Message):
        return message
    # nearly every message of nearly every history
    if (
        type(message) is message_models.Message
        and type(message.content) is str
        and message.role != "function"
        and not message.model_extra
        and message.metadata is None
    ):
        return Message(
            role=message.role,
            content=message.content,
            name=message.name,
            tool_call_id=message.tool_call_id,
        )
    return Message.from_dict(cast("JSONObject", plain_copy(message)))


def _native_spec(spec: message_models.ToolSpec) -> chat.ToolSpec:
    return chat.ToolSpec(
        name=spec.name,
        parameters=cast("JSONObject", plain_copy(spec.parameters)),
        description=spec.description,
        extras=_extras(spec),
    )


# -- what it answers


def native_response(
    response: message_models.ChatResponse, calls: Sequence[object] | None
) -> chat.ChatResponse:
    """Return an answer of the original as the SDK's.

    Args:
        response: the answer.
        calls: the calls that its provider reads of it.

    Raises:
        ValueError: a block is none.
    """
    native = chat.ChatResponse(
        content=[native_block(block) for block in response.content or ()],
        tool_calls=tuple(native_call(call) for call in calls) if calls else None,
        usage=_native(response.usage, chat.Usage),
        degradation=_native(response.degradation, chat.Degradation),
        finish_reason=_finish_reason(response.finish_reason),
        metadata=_json(response.metadata),
    )
    # a loop of the original finds the very answer, with what its provider added to it
    vars(native)[_ORIGINAL] = response
    return native


def _finish_reason(given: str | None) -> str | None:
    """Return why an answer ended; `None` for a word that says nothing of it, as no loop of the original asks."""
    if given is None:
        return None
    # some vendors' are enumerations, and some write them large
    return FINISH_REASONS.get(str(given).rpartition(".")[2].lower())


def native_block(block: object) -> ContentBlock:
    """Return a block of the original as the SDK's."""
    # nearly every block of nearly every answer
    if type(block) is message_models.TextBlock and not block.model_extra:
        return TextBlock(text=block.text, visibility=block.visibility)
    return block_from_dict(cast("JSONObject", plain_copy(block)))


def native_call(call: object) -> chat.ToolCall:
    """Return a call as the SDK's; arguments that are no object are a problem of the call, which then does not run."""
    if isinstance(call, chat.ToolCall):
        return call
    fields = cast("JSONObject", plain_copy(call))
    arguments = fields.get("arguments", fields.get("input"))
    name = fields.get("name") or fields.get("tool")
    if isinstance(arguments, dict):
        return chat.ToolCall(
            id=str(fields.get("id") or ""), name=str(name or ""), arguments=arguments
        )
    return chat.ToolCall(
        id=str(fields.get("id") or ""),
        name=str(name or ""),
        raw_arguments=str(arguments),
        problem=f"The arguments are an object; got {type(arguments).__name__}",
    )


def _native(value: object, kind: type[T]) -> T | None:
    if value is None:
        return None
    return from_json(cast("JSONValue", plain_copy(value)), kind)


def original_response(response: chat.ChatResponse) -> message_models.ChatResponse:
    """Return an answer as the original's model: the very one, where it came from a provider of the original."""
    known: object = vars(response).get(_ORIGINAL)
    if isinstance(known, message_models.ChatResponse):
        return known
    calls = response.tool_calls
    usage = response.usage
    return message_models.ChatResponse.model_construct(
        content=[original_block(block) for block in response.content],
        tool_calls=[original_call(call) for call in calls] if calls else None,
        usage=None
        if usage is None
        else message_models.Usage.model_validate(to_json(usage)),
        degradation=None
        if response.degradation is None
        else message_models.Degradation.model_validate(to_json(response.degradation)),
        finish_reason=response.finish_reason,
        metadata=_dict_or_none(response.metadata),
    )


def original_call(call: chat.ToolCall) -> message_models.ToolCall:
    """Return a call as the original's model."""
    return message_models.ToolCall(
        id=call.id,
        name=call.name,
        arguments=cast("dict[str, object]", plain_copy(call.arguments)),
    )


# -- what describes providers and models


def native_description(info: object, cls: type[T]) -> T:
    """Return what an original provider says of itself or of a model as the SDK's."""
    if isinstance(info, cls):
        return info
    return from_json(cast("JSONValue", plain_copy(info)), cls)


def original_info(info: chat.ProviderInfo) -> models.ProviderInfo:
    """Return what a provider says of itself as the original's model."""
    return models.ProviderInfo.model_validate(to_json(info))


def original_model(info: chat.ModelInfo) -> models.ModelInfo:
    """Return a model's description as the original's model."""
    return models.ModelInfo.model_validate(to_json(info))


# -- parts


def _dict_or_none(value: Mapping[str, JSONValue] | None) -> dict[str, object] | None:
    if value is None:
        return None
    return cast("dict[str, object]", plain_copy(value))


def _json(value: object) -> JSONObject | None:
    if value is None:
        return None
    return cast("JSONObject", plain_copy(value))


def _dumped(model: object) -> JSONObject | None:
    if isinstance(model, BaseModel):
        return cast(
            "JSONObject",
            model.model_dump(mode="json", by_alias=True, exclude_none=True),
        )
    return _json(model)


def _extras(model: BaseModel) -> JSONObject:
    return cast("JSONObject", plain_copy(model.model_extra or {}))
