"""The events of a turn as JSON objects: the same form wherever they leave the process."""

from __future__ import annotations

import json
from typing import Final

import attrs

from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.convert import to_json
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.progress import ToolOutput, ToolProgress
from amplifier_sdk.streaming import (
    SteeringInjected,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UsageReported,
)

__all__ = [
    "STREAM_EVENT_SCHEMAS",
    "end_to_json",
    "event_to_json",
    "json_or_text",
    "with_value",
]

_TEXT: Final[JSONObject] = {"type": "string"}
_TEXT_OR_NULL: Final[JSONObject] = {"type": ["string", "null"]}
_COUNT: Final[JSONObject] = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL: Final[JSONObject] = {"type": ["number", "null"]}
_ANY: Final[JSONObject] = {}
_USAGE: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "input_tokens": _COUNT,
        "output_tokens": _COUNT,
        "total_tokens": _COUNT,
        "reasoning_tokens": _COUNT,
        "cache_read_tokens": _COUNT,
        "cache_write_tokens": _COUNT,
        "cost_usd": {"type": "string", "description": "US dollars, as a decimal"},
    },
    "required": ["input_tokens", "output_tokens", "total_tokens"],
}
_USAGE_OR_NULL: Final[JSONObject] = {"anyOf": [_USAGE, {"type": "null"}]}
_CALL: Final[JSONObject] = {"id": _TEXT, "name": _TEXT}
_DEGRADATION: Final[JSONObject] = {
    "type": "object",
    "properties": {"requested": _TEXT, "actual": _TEXT, "reason": _TEXT},
    "required": ["requested", "actual", "reason"],
}

_EVENTS: Final[tuple[tuple[str, str, JSONObject], ...]] = (
    ("text_delta", "A piece of the answer's text.", {"text": _TEXT, "index": _COUNT}),
    (
        "thinking_delta",
        "A piece of the model's visible thinking.",
        {"text": _TEXT, "index": _COUNT},
    ),
    (
        "tool_call_delta",
        "A piece of a tool call as it forms; `arguments` is a fragment of JSON text.",
        {**_CALL, "arguments": _TEXT, "index": _COUNT},
    ),
    ("tool_started", "A tool call starts to run.", {**_CALL, "arguments": _ANY}),
    (
        "tool_progress",
        "A running tool says how far it is.",
        {
            **_CALL,
            "message": _TEXT,
            "done": _NUMBER_OR_NULL,
            "total": _NUMBER_OR_NULL,
        },
    ),
    (
        "tool_output",
        "A piece of text that a running tool puts out before its result.",
        {**_CALL, "text": _TEXT},
    ),
    (
        "tool_finished",
        "A tool call ended; a refused or failed one as well.",
        {**_CALL, "arguments": _ANY, "success": {"type": "boolean"}, "output": _TEXT},
    ),
    (
        "usage",
        "An answer of the model ended; `total` is the turn's so far.",
        {"provider": _TEXT, "usage": _USAGE, "total": _USAGE},
    ),
    (
        "steering_injected",
        "A text that was typed while the agent worked is part of the conversation.",
        {"text": _TEXT},
    ),
    (
        "turn_finished",
        "The turn has its answer.",
        {
            "text": _TEXT,
            "usage": _USAGE_OR_NULL,
            "iterations": _COUNT,
            "finish_reason": _TEXT_OR_NULL,
            "limit": _TEXT_OR_NULL,
            "degradations": {"type": "array", "items": _DEGRADATION},
            "unread": {"type": "array", "items": _TEXT},
        },
    ),
)

STREAM_EVENT_SCHEMAS: Final[dict[str, JSONObject]] = {
    kind: {
        "type": "object",
        "description": description,
        "properties": {"type": {"const": kind}, **properties},
        "required": ["type", *properties],
        "additionalProperties": False,
    }
    for kind, description, properties in _EVENTS
}
"""The JSON Schema of each event's object, by its `type`."""


def event_to_json(event: StreamEvent) -> JSONObject:
    """Write an event as a JSON object, whose `type` says what it is."""
    # the text first: of all events of a turn most are pieces of it
    match event:
        case TextDelta(text=text, index=index):
            return {"type": "text_delta", "text": text, "index": index}
        case ThinkingDelta(text=text, index=index):
            return {"type": "thinking_delta", "text": text, "index": index}
        case UsageReported() | SteeringInjected() | TurnFinished():
            return _turn_event(event)
        case _:
            return _tool_event(event)


def _tool_event(
    event: ToolCallDelta | ToolStarted | ToolProgress | ToolOutput | ToolFinished,
) -> JSONObject:
    """Write an event that is about a tool call."""
    match event:
        case ToolCallDelta(id=call_id, name=name, arguments=arguments, index=index):
            return {
                "type": "tool_call_delta",
                "id": call_id,
                "name": name,
                "arguments": arguments,
                "index": index,
            }
        case ToolStarted(call=call):
            return {"type": "tool_started", **_call(call)}
        case ToolProgress(call_id=call_id, tool_name=name):
            return {
                "type": "tool_progress",
                "id": call_id,
                "name": name,
                "message": event.message,
                "done": event.done,
                "total": event.total,
            }
        case ToolOutput(call_id=call_id, tool_name=name, text=text):
            return {"type": "tool_output", "id": call_id, "name": name, "text": text}
        case _:
            return {
                "type": "tool_finished",
                **_call(event.call),
                "success": event.result.success,
                "output": event.result.get_serialized_output(),
            }


def _turn_event(event: UsageReported | SteeringInjected | TurnFinished) -> JSONObject:
    """Write an event that is about the turn, and not about a part of an answer or a tool."""
    match event:
        case UsageReported(provider=provider, usage=usage, total=total):
            return {
                "type": "usage",
                "provider": provider,
                "usage": _usage(usage),
                "total": _usage(total),
            }
        case SteeringInjected(text=text):
            return {"type": "steering_injected", "text": text}
        case _:
            return {
                "type": "turn_finished",
                "text": event.text,
                **end_to_json(event),
                "unread": list(event.unread),
            }


def end_to_json(event: TurnFinished) -> JSONObject:
    """Write how a turn ended and what it took, without its text."""
    return {
        "usage": _usage(event.usage),
        "iterations": event.iterations,
        "finish_reason": event.finish_reason,
        "limit": event.limit,
        # a list also without any: readers index it without asking
        "degradations": [to_json(degradation) for degradation in event.degradations],
    }


def json_or_text(value: object) -> JSONValue:
    """Turn a value into JSON data; what has no JSON form becomes its Python text."""
    try:
        return to_json(value)
    except (TypeError, ValueError):
        # A tool of a program's own may return any object, and an event is lost if one of
        # its parts is.
        return repr(value)


def with_value(event: TurnFinished, value: object) -> TurnFinished:
    """Return the end of a turn whose answer is a value, with the value as its text."""
    text = json.dumps(json_or_text(value), ensure_ascii=False)
    return attrs.evolve(event, text=text)


def _call(call: ToolCall) -> JSONObject:
    return {"id": call.id, "name": call.name, "arguments": json_or_text(call.arguments)}


def _usage(usage: Usage | None) -> JSONValue:
    if usage is None:
        return None
    return json_or_text(usage)
