"""What happened in one turn: the text of its answers, and the results of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from amplifier.kernel.spans import Span
from amplifier_sdk.chat import ChatResponse, Degradation
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier.kernel.turn.replay import Replay  # few turns are continued

__all__ = ["TurnLog"]


@attrs.define(eq=False, repr=False)
class TurnLog:
    """The text of one turn as it streamed, how its last answer ended, and what its calls gave.

    Args:
        iteration: the number of the last provider call, from 0.
        request: the span of that call, to which the calls of its answer belong.
        was_shown: whether anybody saw a part of the last request's answer.
        finish_reason: why the last answer ended.
        degradations: in what the answers are not what was asked for.
        results: the results of the last answer's calls by id, as far as they are there.
        replay: what is recorded of a turn that is continued.
    """

    iteration: int | None = None
    request: Span | None = None
    was_shown: bool = False
    finish_reason: str | None = None
    degradations: list[Degradation] = attrs.field(factory=list)
    results: dict[str, ToolResult] = attrs.field(factory=dict)
    replay: Replay | None = None
    _pieces: list[str] = attrs.field(factory=list)
    _complete: int = 0  # how many pieces belong to answers that ended

    def begin_answer(self, iteration: int, request: Span) -> None:
        """Begin an answer; what was written of one that failed before anybody saw it is forgotten."""
        self.iteration, self.request = iteration, request
        if not self.was_shown:
            del self._pieces[self._complete :]
        self.was_shown = False

    def add_text(self, text: str) -> None:
        """Note a piece of the answer."""
        self._pieces.append(text)

    def end_answer(self, response: ChatResponse) -> None:
        """Note that the answer is complete, and why it ended.

        A vendor may give the calls of every answer the same ids: there is no result yet of what this one calls.
        """
        self._complete = len(self._pieces)
        self.finish_reason = response.finish_reason
        if response.degradation is not None:
            self.degradations.append(response.degradation)
        for call in response.tool_calls or ():
            self.results.pop(call.id, None)

    @property
    def text(self) -> str:
        """What the model wrote in this turn, as far as it streamed."""
        return "".join(self._pieces)

    @property
    def unfinished_text(self) -> str:
        """What it wrote of an answer that was never completed."""
        return "".join(self._pieces[self._complete :])
