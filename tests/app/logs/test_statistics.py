"""What a log comes to, and each record in a few words."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.logs.statistics import LogStatistics
from amplifier.app.logs.summaries import summary_of
from tests.app.logs.records import Story, at

USAGE = {"input_tokens": 900, "output_tokens": 60, "cost_usd": "0.004"}


def test_calls_and_decisions_are_counted_by_who_made_them() -> None:
    story = Story()
    story.tell("provider:response", provider="p", duration=0.5, usage=USAGE)
    story.tell(
        "provider:response",
        provider="p",
        duration=0.25,
        usage={**USAGE, "cost_usd": 0.001},
    )
    story.tell(
        "provider:response",
        provider="q",
        duration=True,
        usage={"input_tokens": -1, "cost_usd": "NaN"},
    )
    story.tell("provider:error", provider="p", level="error", error={})
    story.tell("provider:retry", provider="p", level="warning")
    story.tell("provider:request", provider="p")
    story.tell("tool:pre", tool_name="t")
    story.tell("tool:post", tool_name="t", duration=2, result={"success": True})
    story.tell("tool:post", tool_name="t", duration=1, result={"success": False})
    story.tell("tool:error", tool_name=None, level="error", turn="other")
    story.tell(
        "hook:decided", module="hooks-x", handler="h", action="deny", duration=0.1
    )
    story.tell("hook:decided", handler="h", action="modify", duration="long")
    story.tell("hook:other", turn=None)
    found = LogStatistics()
    for record in reversed(story.records):
        found.add(record)

    assert (found.records, found.first, found.last, len(found.turns)) == (
        13,
        at(1),
        at(13),
        2,
    )
    shown = found.to_dict()
    assert shown["levels"] == {"info": 10, "error": 2, "warning": 1}
    assert found.events["provider:response"] == 3
    provider = found.providers["p"]
    assert (provider.calls, provider.errors, provider.retries, provider.seconds) == (
        3,
        1,
        1,
        0.75,
    )
    assert (provider.input_tokens, provider.output_tokens, provider.cost_usd) == (
        1800,
        120,
        Decimal("0.005"),
    )
    assert (found.providers["q"].cost_usd, found.providers["q"].input_tokens) == (
        None,
        0,
    )
    assert shown["tools"] == {
        "t": {"calls": 2, "failures": 1, "errors": 0, "seconds": 3.0},
        "(unnamed)": {"calls": 1, "failures": 0, "errors": 1, "seconds": 0.0},
    }
    assert shown["hooks"] == {
        "h": {"decisions": {"modify": 1}, "seconds": 0.0},
        "hooks-x": {"decisions": {"deny": 1}, "seconds": 0.1},
    }


@pytest.mark.parametrize(
    ("event", "data", "said"),
    [
        ("prompt:submit", {"prompt": "Hello?"}, "Hello?"),
        ("execution:end", {"status": "success", "response": "Hi"}, "success: Hi"),
        ("provider:request", {"provider": "p", "model": None}, "p"),
        (
            "provider:request",
            {"provider": "p", "messages": "(left out: 2 messages: system, user)"},
            "p, 2 messages: system, user",
        ),
        (
            "provider:request",
            {"provider": "p", "messages": [{"role": "system"}, {"role": "user"}]},
            "p, 2 messages: system, user",
        ),
        (
            "provider:response",
            {"provider": "p", "duration": 1.5, "usage": USAGE},
            "p, 1.50 s, 900+60 tokens, $0.004",
        ),
        (
            "provider:response",
            {"provider": "p", "tool_calls": True},
            "p, 0 ms, calls tools",
        ),
        (
            "provider:response",
            {"provider": "p", "usage": {**USAGE, "cost_usd": None}},
            "p, 0 ms, 900+60 tokens",
        ),
        (
            "provider:error",
            {"provider": "p", "error": {"type": "E", "message": "m"}},
            "p: E: m",
        ),
        ("provider:error", {"provider": "p", "error": "text"}, "p: text"),
        ("provider:error", {"provider": "p", "error": {"code": 1}}, 'p: {"code": 1}'),
        (
            "provider:retry",
            {
                "provider": "p",
                "attempt": 1,
                "max_retries": 3,
                "delay": 2.0,
                "error_message": "busy",
            },
            "p: attempt 1 of 3 in 2.0 s: busy",
        ),
        ("tool:pre", {"tool_name": "t", "tool_input": {"a": 1}}, 't {"a": 1}'),
        ("tool:pre", {"tool_name": "t", "tool_input": "odd"}, "t odd"),
        (
            "tool:post",
            {"tool_name": "t", "duration": 0.004, "result": {"output": {"n": 1}}},
            't 4 ms: {"n": 1}',
        ),
        ("tool:post", {"tool_name": "t", "result": "odd"}, "t 0 ms: odd"),
        (
            "tool:post",
            {
                "tool_name": "t",
                "result": {"success": False, "error": {"message": "no"}},
            },
            "t failed, 0 ms: no",
        ),
        (
            "tool:error",
            {"tool_name": "t", "error": {"type": "denied", "msg": "no"}},
            "t: denied: no",
        ),
        (
            "hook:decided",
            {
                "module": "m",
                "action": "modify",
                "hook_event": "tool:pre",
                "duration": 0.01,
                "changed": {"tool_input": {}},
                "reason": "safer",
            },
            "m: modify (tool_input) on tool:pre, 10 ms: safer",
        ),
        (
            "hook:decided",
            {"handler": "h", "action": "deny", "hook_event": "x"},
            "h: deny on x, 0 ms",
        ),
        (
            "context:compaction",
            {
                "before_tokens": 9,
                "after_tokens": 4,
                "before_messages": 3,
                "after_messages": 2,
            },
            "9 to 4 tokens, 3 to 2 messages",
        ),
        (
            "context:compaction",
            {"before_messages": 3, "after_messages": 2},
            "3 to 2 messages",
        ),
        ("content_block:end", {"block": {"type": "text", "text": "Hi"}}, "text: Hi"),
        ("content_block:end", {"block": {"type": "image"}}, "image"),
        ("content_block:end", {"block": None}, '{"block": null}'),
        ("my:own", {"a": [1, None]}, '{"a": [1, null]}'),
        ("session:start", {}, ""),
    ],
    ids=[f"case{number}" for number in range(27)],
)
def test_a_record_is_told_in_a_few_words(
    event: str, data: dict[str, object], said: str
) -> None:
    assert summary_of(Story().tell(event, **data)) == said  # type: ignore[arg-type]  # keys of data alone


KEYS = [
    "type",
    "message",
    "usage",
    "error",
    "result",
    "success",
    "output",
    "cost_usd",
    "input_tokens",
    "text",
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=6,
)
EVENTS = [
    "provider:response",
    "provider:error",
    "tool:post",
    "tool:pre",
    "hook:decided",
    "context:compaction",
    "x:y",
]
NAMES = [
    "provider",
    "usage",
    "error",
    "result",
    "tool_name",
    "tool_input",
    "duration",
    "changed",
    "action",
    "block",
]


@given(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(NAMES), JSON))
def test_whatever_a_record_holds_is_counted_and_told(
    event: str, data: dict[str, object]
) -> None:
    record = Story().tell(event, **data)  # type: ignore[arg-type]  # likewise
    found = LogStatistics()
    found.add(record)
    assert found.to_dict()["records"] == 1
    assert isinstance(summary_of(record), str)
