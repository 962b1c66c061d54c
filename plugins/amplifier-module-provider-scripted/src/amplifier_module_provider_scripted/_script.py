"""The script: what the provider answers, call by call; and the module, the kit's provider with a configured script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import attrs
from attrs.validators import optional

from amplifier_kit import scripted
from amplifier_kit.scripted import Part, ScriptedAnswer, answer, call
from amplifier_sdk import ThinkingBlock, Usage, errors, provider
from amplifier_sdk.bounds import amount, pause
from amplifier_sdk.configuration import read_config
from amplifier_sdk.content import ContentBlock
from amplifier_sdk.errors import ConfigError, LLMError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import Value

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ScriptedCall",
    "ScriptedConfig",
    "ScriptedError",
    "ScriptedProvider",
    "ScriptedResponse",
    "ScriptedUsage",
    "read_script",
]

ERRORS: Final[Mapping[str, type[LLMError]]] = {
    name: cls
    for name in errors.__all__
    if isinstance(cls := getattr(errors, name), type) and issubclass(cls, LLMError)
}
"""The errors a script may raise, by name."""


def _known(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if value not in ERRORS:
        raise ValueError(
            f"{attribute.name}: no error {value!r}{did_you_mean(value, list(ERRORS))}"
        )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScriptedCall(Value):
    """A tool call of a scripted answer; `arguments` is an object, or text as a model may garble it."""

    name: str
    arguments: JSONValue = attrs.field(factory=dict)
    id: str | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScriptedError(Value):
    """A failure instead of an answer: one of the `LLMError` family by name."""

    type: str = attrs.field(default="LLMError", validator=_known)
    message: str = "scripted error"
    retryable: bool | None = None
    status_code: int | None = None
    retry_after: float | None = None

    def build(self) -> LLMError:
        """Make the exception."""
        error = ERRORS[self.type](self.message)
        error.status_code = self.status_code
        error.retry_after = self.retry_after
        # else the default of the error's class stays
        if self.retryable is not None:
            error.retryable = self.retryable
        return error


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScriptedUsage(Value):
    """What an answer used, in tokens; `cost_usd` is in US dollars."""

    input_tokens: int = attrs.field(default=0, validator=amount)
    output_tokens: int = attrs.field(default=0, validator=amount)
    reasoning_tokens: int | None = attrs.field(default=None, validator=optional(amount))
    cache_read_tokens: int | None = attrs.field(
        default=None, validator=optional(amount)
    )
    cache_write_tokens: int | None = attrs.field(
        default=None, validator=optional(amount)
    )
    cost_usd: Decimal | None = None

    def build(self) -> Usage:
        """Make the usage."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            total_tokens=self.input_tokens + self.output_tokens,
            reasoning_tokens=self.reasoning_tokens,
            cache_read_tokens=self.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens,
            cost_usd=self.cost_usd,
        )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScriptedResponse(Value):
    """One answer.

    Args:
        text: the answer's text.
        thinking: visible thinking before it.
        blocks: content blocks between the two, as messages store them: thinking with its signature, reasoning
            items, a vendor's own.
        deltas: the pieces in which the text streams, instead of `text`.
        tool_calls: the calls it makes.
        usage: input and output tokens, or a `ScriptedUsage`; default counts words.
        finish_reason: default `tool_calls` with calls, else `stop`.
        delay: seconds before the answer begins.
        error: a failure, after whatever `deltas` there are.
    """

    text: str = ""
    thinking: str | None = None
    blocks: tuple[ContentBlock, ...] = ()
    deltas: tuple[str, ...] = ()
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: tuple[int, int] | ScriptedUsage | None = None
    finish_reason: str | None = None
    delay: float = attrs.field(default=0.0, validator=pause)
    error: ScriptedError | None = None

    def build(self) -> ScriptedAnswer:
        """Make the answer in the parts in which it forms."""
        parts: list[Part]
        parts = []
        if self.delay:
            parts = [self.delay]
        if self.thinking is not None:
            parts.append(ThinkingBlock(thinking=self.thinking))
        parts += self.blocks
        parts += self.deltas or (self.text,)
        if self.error is not None:
            parts.append(self.error.build())
        parts += [
            call(entry.name, entry.arguments, id=entry.id or "")
            for entry in self.tool_calls
        ]
        return answer(*parts, usage=self._usage(), finish_reason=self.finish_reason)

    def _usage(self) -> Usage | None:
        if isinstance(self.usage, tuple):
            return ScriptedUsage(
                input_tokens=self.usage[0], output_tokens=self.usage[1]
            ).build()
        if self.usage is None:
            return None
        return self.usage.build()


def read_script(entries: JSONValue, *, subject: str) -> tuple[ScriptedResponse, ...]:
    """Read a script: a list of strings and mappings, or the path of a JSON or JSON Lines file with one.

    Raises:
        ConfigError: an entry is no answer; names its place and the nearest key.
    """
    if isinstance(entries, str):
        from pathlib import Path  # most scripts stand in the configuration

        entries = _read_file(Path(entries).expanduser())
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ConfigError.of(
            "responses",
            f"a list of answers; got {type(entries).__name__}",
            subject=subject,
        )
    return tuple(
        _read_entry(entry, index, subject) for index, entry in enumerate(entries)
    )


def _read_entry(entry: JSONValue, index: int, subject: str) -> ScriptedResponse:
    path = f"responses[{index}]"
    if isinstance(entry, str):
        return ScriptedResponse(text=entry)
    if not isinstance(entry, Mapping):
        problem = f"an answer is a text or a mapping; got {type(entry).__name__}"
        raise ConfigError.of(path, problem, subject=subject)
    if isinstance(entry.get("error"), str):
        entry = {**entry, "error": {"message": entry["error"]}}
    try:
        return read_config(ScriptedResponse, entry, subject=subject)
    except ConfigError as error:
        raise ConfigError(
            [Problem(f"{path}.{p.path}", p.message) for p in error.problems],
            subject=subject,
        ) from error


def _read_file(path: Path) -> JSONValue:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            lines: list[JSONValue] = [
                json.loads(line) for line in text.splitlines() if line.strip()
            ]
            return lines
        whole: JSONValue = json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError.of(
            "responses", f"cannot read {str(path)!r}: {error}"
        ) from error
    return whole


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScriptedConfig(Value):
    """The provider's settings.

    Args:
        responses: a list of answers (texts, or mappings as in `ScriptedResponse`), or the path of a JSON or
            JSON Lines file with one.
        repeat: start the script again at its end, instead of failing.
        by_history: choose the answer by how many answers the request shows, so that another process which continues
            a turn continues the script.
        name: the provider's name, to distinguish several.
        context_window: tokens it claims to take.
        max_output_tokens: tokens it claims to write.
    """

    responses: JSONValue
    repeat: bool = False
    by_history: bool = False
    name: str = "scripted"
    context_window: int = 200_000
    max_output_tokens: int = 8_000


@provider
class ScriptedProvider(scripted.ScriptedProvider):
    """Answers from the configured script and keeps the requests it saw in `requests`."""

    def __init__(self, config: ScriptedConfig) -> None:
        super().__init__(
            *(
                response.build()
                for response in read_script(config.responses, subject="script")
            ),
            name=config.name,
            repeat=config.repeat,
            by_history=config.by_history,
            context_window=config.context_window,
            max_output_tokens=config.max_output_tokens,
        )
