"""Every event of a turn has one JSON form, and its schema says which."""

from __future__ import annotations

import json
from typing import get_args

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.event_json import STREAM_EVENT_SCHEMAS, event_to_json
from amplifier_sdk import streaming
from amplifier_sdk.chat import Degradation, ToolCall, Usage
from amplifier_sdk.progress import ToolOutput, ToolProgress
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import (
    SteeringInjected,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UsageReported,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
COUNTS = st.integers(0, 10**12)
USAGES = st.builds(
    Usage,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    total_tokens=COUNTS,
    reasoning_tokens=st.none() | COUNTS,
    cost_usd=st.none() | st.decimals(0, 100, places=4),
    extras=st.dictionaries(st.just("vendor_tokens"), COUNTS),
)
CALLS = st.builds(
    ToolCall,
    id=st.text(),
    name=st.text(),
    arguments=st.dictionaries(st.text(), JSON),
)
RESULTS = st.builds(ToolResult, success=st.booleans(), output=JSON)
PIECES = {"text": st.text(), "index": COUNTS}
TOOLS = {"call_id": st.text(), "tool_name": st.text()}
LOSSES = st.builds(Degradation, requested=st.text(), actual=st.text(), reason=st.text())
EVENTS: st.SearchStrategy[StreamEvent] = st.one_of(
    st.builds(TextDelta, **PIECES),
    st.builds(ThinkingDelta, **PIECES),
    st.builds(
        ToolCallDelta,
        id=st.text(),
        name=st.text(),
        arguments=st.text(),
        index=COUNTS,
    ),
    st.builds(ToolStarted, call=CALLS),
    st.builds(ToolFinished, call=CALLS, result=RESULTS),
    st.builds(
        ToolProgress, **TOOLS, message=st.text(), done=st.none() | st.floats(0, 9)
    ),
    st.builds(ToolOutput, **TOOLS, text=st.text()),
    st.builds(UsageReported, provider=st.text(), usage=USAGES, total=USAGES),
    st.builds(SteeringInjected, text=st.text()),
    st.builds(
        TurnFinished,
        text=st.text(),
        usage=st.none() | USAGES,
        iterations=COUNTS,
        finish_reason=st.none() | st.text(),
        limit=st.none() | st.text(),
        unread=st.lists(st.text()).map(tuple),
        degradations=st.lists(LOSSES, max_size=2).map(tuple),
    ),
)


@given(EVENTS)
def test_every_event_is_json_of_its_schema(event: StreamEvent) -> None:
    written = event_to_json(event)

    read = json.loads(json.dumps(written))
    assert read == written
    jsonschema_rs.validate(STREAM_EVENT_SCHEMAS[read["type"]], read)


def test_every_kind_of_event_has_a_schema() -> None:
    kinds = {
        kind.__name__
        for kind in (*get_args(streaming.StreamEvent), *get_args(streaming.ToolEvent))
        if isinstance(kind, type)
    }

    assert len(STREAM_EVENT_SCHEMAS) == len(kinds | {"ToolProgress", "ToolOutput"})
    for schema in STREAM_EVENT_SCHEMAS.values():
        jsonschema_rs.meta.validate(schema)


def test_arguments_without_a_json_form_become_their_text() -> None:
    call = ToolCall(id="1", name="x", arguments={"a": object})  # type: ignore[dict-item]

    written = event_to_json(ToolStarted(call=call))

    assert written["arguments"] == "{'a': <class 'object'>}"


@pytest.mark.parametrize("text", ["\ud800", "\n", "\u2028"])
def test_any_text_can_be_written(text: str) -> None:
    written = json.dumps(event_to_json(TextDelta(text=text)))

    assert written.isascii()
    assert "\n" not in written
