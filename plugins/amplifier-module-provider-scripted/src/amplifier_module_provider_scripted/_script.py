"""The script: what the provider answers, call by call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Final

import attrs

from amplifier_sdk import ChatResponse, TextBlock, ThinkingBlock, ToolCall, ToolCallBlock, Usage, errors
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.configuration import read_config
from amplifier_sdk.content import ContentBlock
from amplifier_sdk.errors import ConfigError, LLMError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ScriptedCall", "ScriptedError", "ScriptedResponse", "read_script"]

ERRORS: Final[Mapping[str, type[LLMError]]] = {
    name: cls for name in errors.__all__ if isinstance(cls := getattr(errors, name), type) and issubclass(cls, LLMError)
}
"""The errors a script may raise, by name."""


def _known(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if value not in ERRORS:
        raise ValueError(f"{attribute.name}: no error {value!r}{did_you_mean(value, list(ERRORS))}")


def _seconds(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value < inf:
        raise ValueError(f"{attribute.name} is a number of seconds from 0; got {value!r}")


@attrs.frozen(kw_only=True)
class ScriptedCall:
    """A tool call of a scripted answer; `arguments` is an object, or text as a model may garble it."""

    name: str
    arguments: JSONValue = attrs.field(factory=dict)
    id: str | None = None


@attrs.frozen(kw_only=True)
class ScriptedError:
    """A failure instead of an answer: one of the `LLMError` family by name."""

    type: str = attrs.field(default="LLMError", validator=_known)
    message: str = "scripted error"
    retryable: bool | None = None
    status_code: int | None = None
    retry_after: float | None = None

    def build(self, provider: str) -> LLMError:
        """Make the exception."""
        error = ERRORS[self.type](self.message)
        error.provider = provider
        error.status_code = self.status_code
        error.retry_after = self.retry_after
        error.retryable = error.retryable if self.retryable is None else self.retryable
        return error


@attrs.frozen(kw_only=True)
class ScriptedResponse:
    """One answer.

    Args:
        text: the answer's text.
        thinking: visible thinking before it.
        deltas: the pieces in which the text streams, instead of `text`.
        tool_calls: the calls it makes.
        usage: input and output tokens; default counts words.
        finish_reason: default `tool_calls` with calls, else `stop`.
        delay: seconds before the answer begins.
        error: a failure, after whatever `deltas` there are.
    """

    text: str = ""
    thinking: str | None = None
    deltas: tuple[str, ...] = ()
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: tuple[int, int] | None = None
    finish_reason: str | None = None
    delay: float = attrs.field(default=0.0, validator=_seconds)
    error: ScriptedError | None = None

    @property
    def pieces(self) -> tuple[str, ...]:
        """The text as it streams."""
        return self.deltas or ((self.text,) if self.text else ())

    def build(self, number: int, input_tokens: int) -> ChatResponse:
        """Make the answer; `number` makes the calls' ids unique in a session."""
        calls = tuple(_call(call, f"call_{number}_{index}") for index, call in enumerate(self.tool_calls))
        text = "".join(self.pieces)
        content: list[ContentBlock] = []
        if self.thinking is not None:
            content.append(ThinkingBlock(thinking=self.thinking))
        if text:
            content.append(TextBlock(text=text))
        content += [ToolCallBlock(id=call.id, name=call.name, input=call.arguments) for call in calls]
        used, written = self.usage or (input_tokens, len(text.split()) + len(calls))
        return ChatResponse(
            content=content,
            tool_calls=calls or None,
            usage=Usage(input_tokens=used, output_tokens=written, total_tokens=used + written),
            finish_reason=self.finish_reason or ("tool_calls" if calls else "stop"),
        )


def _call(call: ScriptedCall, default_id: str) -> ToolCall:
    raw = call.arguments if isinstance(call.arguments, (str, Mapping)) else json.dumps(call.arguments)
    arguments = read_arguments(raw)
    return ToolCall(
        id=default_id if call.id is None else call.id,
        name=call.name,
        arguments=arguments.values,
        raw_arguments=raw if isinstance(raw, str) else None,
        problem=arguments.problem,
    )


def read_script(entries: JSONValue, *, subject: str) -> tuple[ScriptedResponse, ...]:
    """Read a script: a list of strings and mappings, or the path of a JSON or JSON Lines file with one.

    Raises:
        ConfigError: an entry is no answer; names its place and the nearest key.
    """
    if isinstance(entries, str):
        entries = _read_file(Path(entries).expanduser())
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ConfigError([Problem("responses", f"a list of answers; got {type(entries).__name__}")], subject=subject)
    return tuple(_read_entry(entry, index, subject) for index, entry in enumerate(entries))


def _read_entry(entry: JSONValue, index: int, subject: str) -> ScriptedResponse:
    path = f"responses[{index}]"
    if isinstance(entry, str):
        return ScriptedResponse(text=entry)
    if not isinstance(entry, Mapping):
        problem = f"an answer is a text or a mapping; got {type(entry).__name__}"
        raise ConfigError([Problem(path, problem)], subject=subject)
    if isinstance(entry.get("error"), str):
        entry = {**entry, "error": {"message": entry["error"]}}
    try:
        return read_config(ScriptedResponse, entry, subject=subject)
    except ConfigError as error:
        raise ConfigError([Problem(f"{path}.{p.path}", p.message) for p in error.problems], subject=subject) from error


def _read_file(path: Path) -> JSONValue:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            lines: list[JSONValue] = [json.loads(line) for line in text.splitlines() if line.strip()]
            return lines
        whole: JSONValue = json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError([Problem("responses", f"cannot read {str(path)!r}: {error}")]) from error
    return whole
