"""A model's answer as parts of a row: text, thinking, calls of tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from amplifier.app.logs.summaries import text_of
from amplifier.app.traces.texts import Texts
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["answer_sections"]

_Part: TypeAlias = tuple[str | None, str, str]


def answer_sections(data: Mapping[str, JSONValue], texts: Texts) -> Iterator[_Part]:
    """Yield of a `provider:response` the role, the title and the text of each part; no role is no message."""
    response = data.get("response")
    if not isinstance(response, Mapping):
        if response is not None:
            yield "assistant", "Answer", texts.of(response)
        return
    content = response.get("content")
    if isinstance(content, list):
        blocks = content
    else:
        blocks = [] if content is None else [content]
    for block in blocks:
        yield _part(block, texts)
    calls = response.get("tool_calls")
    if isinstance(calls, list) and not any(
        _kind(block) == "tool_call" for block in blocks
    ):
        for call in calls:
            yield "call", "Calls", texts.of(call)
    for key, title in (
        ("finish_reason", "Ended because of"),
        ("degradation", "Degradations"),
    ):
        if response.get(key):
            yield None, title, texts.of(response[key])


def _part(block: JSONValue, texts: Texts) -> _Part:
    if not isinstance(block, Mapping):
        return "assistant", "Answer", texts.of(block)
    match _kind(block):
        case "text":
            return "assistant", "Answer", texts.of(block.get("text"))
        case "thinking":
            return "thinking", "Thinking", texts.of(block.get("thinking"))
        case "tool_call":
            return (
                "call",
                "Calls",
                texts.of({"name": block.get("name"), "arguments": block.get("input")}),
            )
        case kind:
            return "assistant", kind or "Answer", texts.of(dict(block))


def _kind(block: JSONValue) -> str:
    if isinstance(block, Mapping):
        return text_of(block.get("type"))
    return ""
