"""What is reported of how a turn ended, besides its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amplifier_kit.terminal import one_line
from amplifier_sdk.chat import COMPLETE_FINISH_REASONS
from amplifier_sdk.streaming import TurnFinished

__all__ = ["ending_notes"]

_UNASKED: Final = "tool_choice: auto"
"""What each request with tools asks for, and no person; a warning about it would be about nothing they typed."""


def ending_notes(event: TurnFinished) -> Iterator[str]:
    """Yield a line for each thing in which a turn did not end as one that was simply answered."""
    if event.limit is not None:
        yield f"the turn ended early: its limit {event.limit!r} is reached"
    reason = event.finish_reason
    # Vendors add reasons of their own; what is not known as complete is reported.
    if reason is not None and reason not in COMPLETE_FINISH_REASONS:
        yield f"the answer is incomplete: the model stopped because of {one_line(reason)!r}"
    for degradation in event.degradations:
        if degradation.requested == _UNASKED:
            yield one_line(f"note: {degradation.reason}")
        else:
            yield one_line(
                f"warning: the model does not support what was asked: {degradation}"
            )
