"""Events: what they carry loses its secrets before other handlers hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.redaction import REDACTION_FAILED
from amplifier_sdk import HookResult, ToolResult
from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    block_from_dict,
    block_to_dict,
)
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_PRE
from amplifier_sdk.redaction import Redactor

__all__ = ["EventRedaction"]

_LEFT_ALONE: Final = frozenset(
    {
        "iteration",
        "messages",
        "parent_id",
        "parent_span_id",
        "raw",
        "session_id",
        "span_id",
        "timestamp",
        "turn_id",
    }
)
"""What finds an event again, and what vendors are sent: a history is not copied in every step of a turn."""


_TEXTS: Final = (str, Mapping, list, tuple, ToolResult)


@attrs.frozen(eq=False)
class EventRedaction:
    """Answers an event with what it carries, without secrets; without any it answers nothing."""

    redactor: Redactor

    async def hear(self, event: str, data: dict[str, object]) -> HookResult | None:
        """Redact the texts, mappings, lists and tool results of an event.

        When that fails a prompt and a tool call are denied, and what any other event carries is withheld.
        """
        try:
            changed = self._changed(data)
        except Exception:  # foreign values: what could not be redacted must not be seen
            if event in (PROMPT_SUBMIT, TOOL_PRE):
                return HookResult.deny(
                    "The redaction of secrets failed, so nothing is passed on; see hooks-redaction"
                )
            changed = {
                key: ToolResult.failure(REDACTION_FAILED)
                if isinstance(value, ToolResult)
                else REDACTION_FAILED
                for key, value in data.items()
                if key not in _LEFT_ALONE and isinstance(value, _TEXTS)
            }
        if not changed:
            return None
        return HookResult.modify(changed)

    def _changed(self, data: Mapping[str, object]) -> dict[str, object]:
        changed: dict[str, object] = {}
        results: dict[int, object] = {}
        for key, value in data.items():
            if key in _LEFT_ALONE or not isinstance(value, _TEXTS):
                continue
            new = results.get(id(value)) or self._redacted(key, value)
            if new != value and not (isinstance(value, tuple) and new == list(value)):
                changed[key] = results[id(value)] = new
        return changed

    def _redacted(self, key: str, value: object) -> object:
        if isinstance(value, ToolResult):
            return self._result(value)
        try:
            redacted = self.redactor.redact({key: value})  # type: ignore[dict-item]  # what is no JSON data raises
        except TypeError:
            return self._parts(key, value)
        assert isinstance(redacted, Mapping)
        return next(iter(redacted.values()))

    def _parts(self, key: str, value: object) -> object:
        """Redact what is JSON data within a container that also holds objects; those stay as they are."""
        if isinstance(value, Mapping):
            return {
                name: self._redacted(str(name), item) for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._redacted(key, item) for item in value]
        if type(value) is tuple:
            return tuple(self._redacted(key, item) for item in value)
        return value

    def _result(self, result: ToolResult) -> ToolResult:
        output = self._redacted("output", result.output)
        error = self._redacted("error", result.error)
        content = None
        if result.content is not None:
            content = tuple(map(self._block, result.content))
        if (
            output == result.output
            and error == result.error
            and content == result.content
        ):
            return result
        # What comes back is what went in, without secrets.
        return attrs.evolve(result, output=output, error=error, content=content)  # type: ignore[arg-type]  # JSON data stay JSON data

    def _block(self, block: ContentBlock) -> ContentBlock:
        """Redact a block's texts; the data of an image are no text."""
        if isinstance(block, ImageBlock):
            return block
        redacted = self._redacted("content", block_to_dict(block))
        return block_from_dict(redacted)  # type: ignore[arg-type]  # likewise
