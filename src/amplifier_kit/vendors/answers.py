"""The reader of one answer, event by event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from amplifier_kit.http.sse import ServerEvent
from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.streaming import Delta

__all__ = ["AnswerReader"]


class AnswerReader(Protocol):
    """Turns one answer's events into deltas and, at the end, the whole answer; it does no I/O."""

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Take the next event and return what it adds; unknown events and blocks add nothing.

        The result is read to its end before the next call, unless the answer is abandoned.

        Raises:
            LLMError: the vendor reports one in the stream, or the event cannot be read.
        """

    @property
    def is_ended(self) -> bool:
        """Whether the vendor's end marker came; no event after it is fed."""

    def finish(self) -> ChatResponse:
        """Return the whole answer, without the cost, which is added to its `usage` afterwards.

        `usage.input_tokens` counts all that was read, with what came from a cache and what was written to one.

        Raises:
            StreamError: the stream ended without its end marker.
        """
