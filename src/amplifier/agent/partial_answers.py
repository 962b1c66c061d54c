"""The answer that is being written in a stream of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from amplifier.agent.partial_values import PartialObject
from amplifier_sdk.loops.output import ANSWER_TOOL
from amplifier_sdk.streaming import (
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolStarted,
    UsageReported,
)

if TYPE_CHECKING:
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.output_schema import OutputSchema

__all__ = ["PartialAnswer"]


@attrs.define(eq=False)
class PartialAnswer:
    """Reads an answer of a type out of the events of its turn.

    Args:
        wanted: the type.
    """

    wanted: OutputSchema[object]
    _read: PartialObject = attrs.field(factory=PartialObject)
    _call: str | None = None
    _has_ended: bool = False

    @property
    def value(self) -> JSONValue:
        """What is certain of it; `None` before it begins."""
        if self._read.value is None:
            return None
        return self.wanted.unwrapped(self._read.value)

    def read(self, event: StreamEvent) -> None:
        """Take in what an event adds."""
        match event:
            case TextDelta(text=text):
                self._take(text)
            case ToolCallDelta(id=call, name=name, arguments=text) if name.startswith(
                ANSWER_TOOL
            ):
                if call != self._call:
                    self._begin()
                    self._call = call
                self._take(text)
            case UsageReported() | ToolStarted():
                # the end of an answer: whatever is written next is another one
                self._has_ended = True
            case _:
                pass

    def _take(self, text: str) -> None:
        # Not every vendor reports usage; and what only closes a fence begins nothing.
        if self._has_ended or (self._read.has_ended and "{" in text):
            self._begin()
        self._read.feed(text)

    def _begin(self) -> None:
        self._read, self._call, self._has_ended = PartialObject(), None, False
