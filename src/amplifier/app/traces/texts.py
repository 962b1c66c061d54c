"""Texts on their way into a page: nothing in them is obeyed, and all of them together have a bound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from amplifier.app.logs.summaries import text_of
from amplifier_kit.open_data import as_list
from amplifier_kit.terminal import visible
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Texts", "answer_sections", "arguments_words", "words"]

_LONGEST: Final = 20_000
_TOTAL: Final = 24_000_000
_SHORT: Final = 200
_LABEL: Final = 160
_MORE: Final = {"finish_reason": "Ended because of", "degradation": "Degradations"}

_Part: TypeAlias = tuple[str | None, str, str]


@attrs.define(eq=False)
class Texts:
    """Makes texts visible and cuts them; once so many characters went into the page, only beginnings follow.

    Args:
        longest: characters of one text.
        total: characters of all.
    """

    longest: int = _LONGEST
    total: int = _TOTAL
    used: int = 0

    def of(self, value: JSONValue) -> str:
        """Write a value: a text as it is, anything else as indented JSON."""
        if value is None or isinstance(value, str):
            return self.cut(value or "")
        try:
            return self.cut(json.dumps(value, indent=2, ensure_ascii=False))
        except RecursionError:  # the indenting writer goes less deep than the reader
            return self.cut(_compact(value))

    def cut(self, text: str) -> str:
        """Bring a text into the page: control characters and marks of direction become escapes."""
        limit = self.longest
        if self.used >= self.total:
            limit = min(_SHORT, limit)
        shown = visible(text[:limit])
        self.used += len(shown)
        if len(text) <= limit:
            return shown
        return f"{shown}\n… {len(text):,} characters in all"


def words(value: JSONValue, longest: int = _LABEL) -> str:
    """Write a value as a label: one visible line."""
    if isinstance(value, str):
        text = value
    else:
        text = "" if value is None else _compact(value)
    line = " ".join(visible(text[: longest * 4]).split())
    if len(line) <= longest:
        return line
    return f"{line[: longest - 1]}…"


def arguments_words(arguments: JSONValue) -> str:
    """Write what a tool is called with as a label: one value as it is, several with their names."""
    if not isinstance(arguments, Mapping):
        return words(arguments)
    if len(arguments) == 1:
        return words(next(iter(arguments.values())))
    first = list(arguments.items())[:8]
    return words(", ".join(f"{name}: {words(value, 60)}" for name, value in first))


def _compact(value: JSONValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deep to be written)"


def answer_sections(data: Mapping[str, JSONValue], texts: Texts) -> Iterator[_Part]:
    """Yield of a `provider:response` the role, the title and the text of each part; no role is no message."""
    response = data.get("response")
    if not isinstance(response, Mapping):
        if response is not None:
            yield "assistant", "Answer", texts.of(response)
        return
    content = response.get("content")
    blocks = [] if content is None else [content]
    if isinstance(content, list):
        blocks = content
    for block in blocks:
        yield _part(block, texts)
    if not any(_kind(block) == "tool_call" for block in blocks):
        for call in as_list(response.get("tool_calls")):
            yield "call", "Calls", texts.of(call)
    for key, title in _MORE.items():
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
            call = {"name": block.get("name"), "arguments": block.get("input")}
            return "call", "Calls", texts.of(call)
        case kind:
            return "assistant", kind or "Answer", texts.of(dict(block))


def _kind(block: JSONValue) -> str:
    if isinstance(block, Mapping):
        return text_of(block.get("type"))
    return ""
