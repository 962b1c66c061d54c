"""A turn that is continued: what its journal has of it is returned in the place of running it again.

The loop runs from the turn's beginning. As long as the journal has answers of the model, a request is none, and gives
the next of them; as long as the answer that was given last is a recorded one, its calls are what the journal says of
them. So any loop continues, whatever it decides between its steps, and no finished step is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from amplifier_sdk.chat import ChatResponse, ToolCall
from amplifier_sdk.content import ContentBlock, TextBlock, ToolCallBlock
from amplifier_sdk.loops.notices import CALL_IN_DOUBT, CALL_WITHHELD
from amplifier_sdk.messages import Message
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier_sdk.contracts import Tool
    from amplifier_sdk.journal import RecordedAnswer, RecordedTurn
    from amplifier_sdk.messages import MessageDict

__all__ = ["Replay", "asks_first", "is_idempotent"]


@attrs.define(eq=False, repr=False)
class Replay:
    """Hands out the recorded steps of one turn, each once.

    Args:
        recorded: what the journal has of the turn.
    """

    recorded: RecordedTurn
    _given: int = 0
    _answer: RecordedAnswer | None = None

    def next_answer(self) -> ChatResponse | None:
        """Return the next recorded answer of the model; `None` where it has to be asked."""
        self._answer = None
        if self._given == len(self.recorded.answers):
            return None
        self._answer = self.recorded.answers[self._given]
        self._given += 1
        return _response(self._answer.message)

    @property
    def is_behind(self) -> bool:
        """Whether there are recorded answers that were not given yet."""
        return self._given < len(self.recorded.answers)

    def result(self, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """Return the result of a call that does not run any more; `None` where it has to be run."""
        answer = self._answer
        if answer is None:
            return None
        end = answer.finished.get(call.id)
        if end is not None:
            if end.success:
                return ToolResult(output=end.output)
            # recorded is what the model read of a failure
            return ToolResult.failure(end.output.removeprefix("Error: "))
        if call.id in answer.withheld:
            return CALL_WITHHELD
        if call.id not in answer.started or is_idempotent(tool):
            return None
        if asks_first(tool) and answer.is_waiting(call.id):
            return None
        return CALL_IN_DOUBT

    def is_finished(self, call_id: str) -> bool:
        """Whether the journal has the end of a call."""
        return self._answer is not None and call_id in self._answer.finished


def is_idempotent(tool: Tool | None) -> bool:
    """Whether a tool says that to run a call twice is as if it had run once: nobody else knows."""
    said: object = getattr(tool, "idempotent", False)
    return said is True


def asks_first(tool: Tool | None) -> bool:
    """Whether a tool says that it does nothing before a person has answered it."""
    said: object = getattr(tool, "asks_first", False)
    return said is True


def _response(message: MessageDict) -> ChatResponse:
    """Return the answer that was stored as a message."""
    content = Message.from_dict(message).content
    if isinstance(content, str):
        text = (TextBlock(text=content),) if content else ()
        return ChatResponse(content=text, finish_reason="stop")
    calls = tuple(_calls(message, content))
    metadata = message.get("metadata")
    return ChatResponse(
        content=content,
        tool_calls=calls or None,
        finish_reason="tool_calls" if calls else "stop",
        metadata=metadata if isinstance(metadata, dict) else None,
    )


def _calls(message: MessageDict, blocks: Sequence[ContentBlock]) -> Iterator[ToolCall]:
    """Yield the calls of a message, as they are shown: text that could not be read is no empty object."""
    listed = message.get("tool_calls")
    shown = {
        str(each.get("id")): each.get("arguments")
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    }
    for block in blocks:
        if isinstance(block, ToolCallBlock):
            given = shown.get(block.id)
            arguments = given if isinstance(given, dict) else dict(block.input)
            problem, raw = None, None
            if list(arguments) == ["raw_arguments"]:
                raw, arguments = str(arguments["raw_arguments"]), {}
                problem = "Its arguments could not be read as a JSON object"
            yield ToolCall(
                id=block.id,
                name=block.name,
                arguments=arguments,
                raw_arguments=raw,
                problem=problem,
            )
