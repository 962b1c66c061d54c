"""Deltas that follow each other join into one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk.chat import ToolCall
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import (
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)

PIECES = st.lists(st.text(max_size=5), min_size=1, max_size=6)


@given(PIECES, st.integers(0, 3))
def test_text_that_is_merged_loses_nothing(pieces: list[str], index: int) -> None:
    text, *rest = [TextDelta(text=piece, index=index) for piece in pieces]
    for delta in rest:
        text = text.merged(delta)

    assert text == TextDelta(text="".join(pieces), index=index)


@given(PIECES)
def test_thinking_that_is_merged_loses_nothing(pieces: list[str]) -> None:
    thinking, *rest = [ThinkingDelta(text=piece) for piece in pieces]
    for delta in rest:
        thinking = thinking.merged(delta)

    assert thinking == ThinkingDelta(text="".join(pieces))


@given(PIECES)
def test_arguments_that_are_merged_keep_their_call(pieces: list[str]) -> None:
    call, *rest = [
        ToolCallDelta(id="1", name="t", arguments=piece, index=2) for piece in pieces
    ]
    for delta in rest:
        call = call.merged(delta)

    assert call == ToolCallDelta(id="1", name="t", arguments="".join(pieces), index=2)


def test_what_a_reader_of_a_turn_sees_is_compared_by_value() -> None:
    call = ToolCall(id="1", name="t")

    assert ToolStarted(call=call) == ToolStarted(call=ToolCall(id="1", name="t"))
    assert ToolFinished(call=call, result=ToolResult()) != ToolFinished(
        call=call, result=ToolResult.failure("x")
    )
    assert TurnFinished(text="x").usage is None
