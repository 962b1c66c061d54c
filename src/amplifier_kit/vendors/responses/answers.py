"""A whole response of the API as the SDK's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from amplifier_kit.vendors.payloads import read_tokens, storable
from amplifier_kit.vendors.responses._fields import mapping, mappings, text
from amplifier_kit.vendors.responses.items import PHASE
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import ChatResponse, ToolCall, Usage
from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    VendorBlock,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "CONTINUATIONS",
    "INCOMPLETE_REASON",
    "REASONING_ITEMS",
    "RESPONSE_ID",
    "STATUS",
    "answer",
    "call_id",
    "tool_name",
]

RESPONSE_ID: Final = "openai:response_id"
"""The key of an answer's metadata with the response's id, from which a later request can go on."""

STATUS: Final = "openai:status"
"""The key with what became of the response: `completed` or `incomplete`."""

CONTINUATIONS: Final = "openai:continuation_count"
"""The key with how often an answer was continued; absent where it was not."""

INCOMPLETE_REASON: Final = "openai:incomplete_reason"
"""The key with why the vendor cut the answer."""

REASONING_ITEMS: Final = "openai:reasoning_items"
"""The key with the ids of the answer's reasoning."""

_REASONS: Final[Mapping[str | None, str]] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


def answer(
    response: Mapping[str, JSONValue],
    output: Sequence[Mapping[str, JSONValue]],
    names: Mapping[str, str],
) -> ChatResponse:
    """Read a response that the API has ended.

    An incomplete one keeps its text and loses its calls: none of them may run.

    Args:
        response: the response of the last event.
        output: its items.
        names: the names of tools by those under which the API knows them, where they differ.
    """
    is_complete = text(response, "status") != "incomplete"
    calls: list[ToolCall] = []
    ids: set[str] = set()
    content: list[ContentBlock] = []
    for place, item in enumerate(output):
        if text(item, "type") != "function_call":
            content.extend(_blocks(item))
        elif is_complete:
            call = _call(item, call_id(item, place, ids), names)
            ids.add(call.id)
            calls.append(call)
            content.append(
                ToolCallBlock(id=call.id, name=call.name, input=call.shown_arguments)
            )
    return ChatResponse(
        content=content,
        tool_calls=calls or None,
        usage=_usage(mapping(response, "usage")),
        finish_reason=_reason(response, is_complete=is_complete, has_calls=bool(calls)),
        metadata=_metadata(response, output),
    )


def call_id(item: Mapping[str, JSONValue], place: int, taken: set[str]) -> str:
    """Return the id of a call, unlike those that are taken; one that the vendor left out is made up."""
    given = text(item, "call_id") or text(item, "id") or f"call_{place}"
    given = storable(given)
    if given in taken:
        return f"{given}-{place}"
    return given


def tool_name(item: Mapping[str, JSONValue], names: Mapping[str, str]) -> str:
    """Return the name of the tool that a call is for; empty where the vendor named none."""
    name = storable(text(item, "name") or "")
    return names.get(name, name)


def _call(
    item: Mapping[str, JSONValue], identity: str, names: Mapping[str, str]
) -> ToolCall:
    raw = text(item, "arguments") or ""
    read = read_arguments(raw)
    name = tool_name(item, names)
    problem = read.problem
    if not name:
        problem = "The call names no tool."
    return ToolCall(
        id=identity,
        name=name,
        arguments={} if problem else read.values,
        raw_arguments=storable(raw),
        problem=problem,
    )


def _blocks(item: Mapping[str, JSONValue]) -> Iterator[ContentBlock]:
    match text(item, "type"):
        case "message":
            yield from _said(item)
        case "reasoning":
            yield _reasoning(item)
        case str(kind):
            yield VendorBlock(
                type=kind,
                extras={key: value for key, value in item.items() if key != "type"},
            )
        case _:  # no item at all
            pass


def _said(item: Mapping[str, JSONValue]) -> Iterator[ContentBlock]:
    phase = text(item, "phase")
    extras: JSONObject = {}
    if phase:
        extras[PHASE] = phase
    for part in mappings(item, "content"):
        key = "text" if text(part, "type") == "output_text" else "refusal"
        if said := text(part, key):
            yield TextBlock(text=storable(said), extras=extras)


def _reasoning(item: Mapping[str, JSONValue]) -> ReasoningBlock:
    extras = {
        key: value
        for key in ("id", "encrypted_content")
        if (value := text(item, key)) is not None
    }
    return ReasoningBlock(
        content=_thoughts(item, "content", "reasoning_text"),
        summary=_thoughts(item, "summary", "summary_text"),
        extras=extras,
    )


def _thoughts(
    item: Mapping[str, JSONValue], key: str, kind: str
) -> tuple[JSONValue, ...]:
    return tuple(
        {"type": kind, "text": storable(thought)}
        for part in mappings(item, key)
        if text(part, "type") == kind and (thought := text(part, "text")) is not None
    )


def _usage(usage: Mapping[str, JSONValue]) -> Usage | None:
    read = read_tokens(usage, "input_tokens")
    written = read_tokens(usage, "output_tokens")
    if read is None or written is None:
        return None
    details = mapping(usage, "input_tokens_details")
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        reasoning_tokens=read_tokens(
            mapping(usage, "output_tokens_details"), "reasoning_tokens"
        ),
        cache_read_tokens=read_tokens(details, "cached_tokens"),
        cache_write_tokens=read_tokens(details, "cache_write_tokens"),
    )


def _reason(
    response: Mapping[str, JSONValue], *, is_complete: bool, has_calls: bool
) -> str:
    if not is_complete:
        return _REASONS.get(
            text(mapping(response, "incomplete_details"), "reason"), "error"
        )
    if has_calls:
        return "tool_calls"
    return "stop"


def _metadata(
    response: Mapping[str, JSONValue], output: Sequence[Mapping[str, JSONValue]]
) -> JSONObject:
    """Keep what a person or a later request may want to know; what is not there is left out."""
    reasoning = [
        identity
        for item in output
        if text(item, "type") == "reasoning" and (identity := text(item, "id"))
    ]
    refusals = [
        refusal
        for item in output
        for part in mappings(item, "content")
        if (refusal := text(part, "refusal"))
    ]
    found: JSONObject = {
        "model": text(response, "model"),
        RESPONSE_ID: text(response, "id"),
        STATUS: text(response, "status"),
        INCOMPLETE_REASON: text(mapping(response, "incomplete_details"), "reason"),
        REASONING_ITEMS: reasoning or None,
        "openai:refusal": storable("".join(refusals)) or None,
        "openai:service_tier": text(response, "service_tier"),
    }
    return {key: value for key, value in found.items() if value is not None}
