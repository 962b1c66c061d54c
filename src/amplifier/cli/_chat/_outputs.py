"""What tools put out in a chat: of each a few lines are shown, and all of it can be opened."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier.app.text.figures import value_text
from amplifier.cli._diffs import DIFF, diff_of
from amplifier_kit.redaction import SinkRedactor
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import TextBlock
from amplifier_sdk.results import ToolResult

__all__ = ["ShownOutput", "ToolOutputs"]

_MAX_OUTPUTS: Final = 20
_MAX_CHARACTERS: Final = 200_000


@attrs.define(eq=False)
class ShownOutput:
    """What one call put out: its beginning, as long as a person may read.

    Args:
        title: the call in a line.
        call: the call.
        result: what it returned; `None` until then.
    """

    title: str
    call: ToolCall
    result: ToolResult | None = None
    _parts: list[str] = attrs.field(factory=list)
    _size: int = 0

    @property
    def has_diff(self) -> bool:
        """Whether it ends with a diff."""
        return (
            not self._parts and self.result is not None and bool(diff_of(self.result))
        )

    def add(self, text: str) -> None:
        """Add a piece that came before the result."""
        if self._size < _MAX_CHARACTERS:
            self._parts.append(text[: _MAX_CHARACTERS - self._size])
        self._size += len(text)

    def text(self, redactor: SinkRedactor) -> str:
        """Return the call with its long arguments, and what is there of its output; may take a while."""
        parts = [self.title]
        given = value_text(redactor.redact(dict(self.call.arguments)))
        if given.count("\n") >= len(self.call.arguments):
            parts.append(given)
        parts.append(self._put_out(redactor))
        return redactor.redact_text("\n".join(filter(None, parts)))

    def _put_out(self, redactor: SinkRedactor) -> str:
        if self._parts or self.result is None:
            text, size = "".join(self._parts), self._size
        else:
            text = _result_text(self.result, redactor)
            size = len(text)
        if size > _MAX_CHARACTERS:
            left = size - _MAX_CHARACTERS
            return f"{text[:_MAX_CHARACTERS]}\n... {left:,} more characters"
        return text


@attrs.define(eq=False)
class ToolOutputs:
    """The latest calls of a chat that put something out, the last one at the end."""

    _latest: deque[ShownOutput] = attrs.field(
        factory=lambda: deque[ShownOutput](maxlen=_MAX_OUTPUTS)
    )

    def __len__(self) -> int:
        return len(self._latest)

    def add(self, output: ShownOutput) -> None:
        """Remember an output."""
        self._latest.append(output)

    def latest(self, number: int) -> ShownOutput:
        """Return the last output, or one before it; the last one is number 1."""
        return self._latest[-number]


def _result_text(result: ToolResult, redactor: SinkRedactor) -> str:
    """Write a result for a person; a diff stands at its end."""
    if result.content:
        texts = [block.text for block in result.content if isinstance(block, TextBlock)]
        return "\n".join(texts)
    if not result.success or result.output is None or isinstance(result.output, str):
        return result.get_serialized_output()
    output = redactor.redact(result.output)
    if not (isinstance(output, Mapping) and diff_of(result)):
        return value_text(output)
    rest = {name: value for name, value in output.items() if name != DIFF}
    return f"{value_text(rest)}\n{output[DIFF]}"
