"""A record in a few words: what a person wants to know of it first."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from amplifier.app.logs.statistics import amount, cost_of, seconds_of
from amplifier.app.text.figures import duration_text
from amplifier_kit.logs.records import LogRecord, roles_of
from amplifier_kit.open_data import as_object
from amplifier_kit.terminal import arguments_text
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["decision_words", "message_of", "result_text", "summary_of", "text_of"]

_Data: TypeAlias = Mapping[str, JSONValue]
_SHORT: Final = 2_000


def summary_of(record: LogRecord) -> str:
    """Summarise a record for one line; the text may have line ends and control characters."""
    data = record.data
    write = _WRITERS.get(record.event)
    if write is None:
        return _rest(data)
    return write(data)


def text_of(value: JSONValue) -> str:
    """Write a value as text: texts as they are, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def message_of(error: JSONValue) -> str:
    """Return the text of an error, with its type."""
    if not isinstance(error, Mapping):
        return text_of(error)
    message = text_of(error.get("message") or error.get("msg"))
    kind = text_of(error.get("type"))
    if kind and message:
        return f"{kind}: {message}"
    return kind or message or text_of(dict(error))


def result_text(result: JSONValue) -> str:
    """Return what a tool gave, or why it failed."""
    if not isinstance(result, Mapping):
        return text_of(result)
    if result.get("success") is False:
        return message_of(result.get("error"))
    return text_of(result.get("output")) or text_of(result.get("content"))


def decision_words(data: _Data) -> tuple[str, str]:
    """Return what a `hook:decided` reports: the action with what it changed, on which event; and why."""
    what = text_of(data.get("action"))
    if changed := as_object(data.get("changed")):
        what += f" ({', '.join(changed)})"
    reasons = (text_of(data.get(key)) for key in ("reason", "question", "message"))
    why = next(filter(None, reasons), "")
    return f"{what} on {text_of(data.get('hook_event'))}", why


def _rest(data: _Data) -> str:
    if data:
        return arguments_text(data)
    return ""


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _model(data: _Data) -> str:
    named = (text_of(data.get(key)) for key in ("provider", "model"))
    return " ".join(filter(None, named))


def _request(data: _Data) -> str:
    messages = data.get("messages")
    sent = roles_of(messages) if isinstance(messages, list) else text_of(messages)
    return _joined(_model(data), sent.removeprefix("(left out: ").removesuffix(")"))


def _response(data: _Data) -> str:
    usage = data.get("usage")
    parts = [_model(data), duration_text(seconds_of(data))]
    if isinstance(usage, Mapping):
        read, written = map(amount, map(usage.get, ("input_tokens", "output_tokens")))
        parts.append(f"{read}+{written} tokens")
        if (cost := cost_of(usage)) is not None:
            parts.append(f"${cost}")
    if data.get("tool_calls"):
        parts.append("calls tools")
    return _joined(*parts)


def _pre(data: _Data) -> str:
    arguments = data.get("tool_input")
    shown = text_of(arguments)
    if isinstance(arguments, Mapping):
        shown = arguments_text(arguments)
    return f"{text_of(data.get('tool_name'))} {shown}"


def _post(data: _Data) -> str:
    result, took = data.get("result"), duration_text(seconds_of(data))
    if as_object(result).get("success") is False:
        took = f"failed, {took}"
    return f"{text_of(data.get('tool_name'))} {took}: {result_text(result)[:_SHORT]}"


def _tool_error(data: _Data) -> str:
    return f"{text_of(data.get('tool_name'))}: {message_of(data.get('error'))}"


def _provider_error(data: _Data) -> str:
    return f"{_model(data)}: {message_of(data.get('error'))}"


def _retry(data: _Data) -> str:
    return (
        f"{_model(data)}: attempt {text_of(data.get('attempt'))} of {text_of(data.get('max_retries'))}"
        f" in {text_of(data.get('delay'))} s: {text_of(data.get('error_message'))}"
    )


def _decided(data: _Data) -> str:
    who = text_of(data.get("module")) or text_of(data.get("handler"))
    decision, why = decision_words(data)
    return f"{who}: {decision}, {duration_text(seconds_of(data))}{': ' if why else ''}{why}"


def _compaction(data: _Data) -> str:
    before, after = data.get("before_tokens"), data.get("after_tokens")
    figures = f"{text_of(before)} to {text_of(after)} tokens, "
    messages = f"{text_of(data.get('before_messages'))} to {text_of(data.get('after_messages'))} messages"
    return (figures if after is not None else "") + messages


def _block(data: _Data) -> str:
    block = data.get("block")
    if not isinstance(block, Mapping):
        return _rest(data)
    shown = block.get("text") or block.get("thinking") or block.get("name")
    return ": ".join(filter(None, (text_of(block.get("type")), text_of(shown))))


def _key(name: str) -> Callable[[_Data], str]:
    return lambda data: text_of(data.get(name))


_WRITERS: Final[Mapping[str, Callable[[_Data], str]]] = {
    "approval:denied": _key("prompt"),
    "approval:granted": _key("prompt"),
    "approval:required": _key("prompt"),
    "content_block:end": _block,
    "content_block:start": _key("block_type"),
    "context:compaction": _compaction,
    "execution:end": lambda data: (
        f"{text_of(data.get('status'))}: {text_of(data.get('response'))}"
    ),
    "execution:start": _key("prompt"),
    "hook:decided": _decided,
    "llm:request": _model,
    "llm:response": _model,
    "prompt:complete": _key("response"),
    "prompt:submit": _key("prompt"),
    "provider:error": _provider_error,
    "provider:request": _request,
    "provider:response": _response,
    "provider:retry": _retry,
    "thinking:final": _key("text"),
    "tool:error": _tool_error,
    "tool:post": _post,
    "tool:pre": _pre,
    "user:notification": _key("message"),
}
