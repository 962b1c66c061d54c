"""A trace is put together from what records tell, in whatever order and state they are."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier.app.traces.builder import build_trace
from amplifier.app.traces.model import Row, SessionTrace
from amplifier.app.traces.page import render_page
from amplifier.app.traces.texts import Texts, words
from amplifier_kit.logs.records import LogRecord
from tests.app.logs.records import Story
from tests.app.traces.pages import ReadPage

USAGE = {
    "input_tokens": 900,
    "output_tokens": 60,
    "cache_read_tokens": 300,
    "cost_usd": "0.004",
}


def outline(trace: SessionTrace) -> list[str]:
    return [
        f"{'  ' * row.depth}{row.kind} {row.name} {row.status}" for row in trace.rows
    ]


def row(trace: SessionTrace, name: str) -> Row:
    return next(row for row in trace.rows if row.name == name)


def sections(found: Row) -> dict[str, str]:
    return {section.title: section.text for section in found.sections}


def a_turn(story: Story) -> None:
    """Tell a turn in which a tool is denied after a handler was asked, and another one runs."""
    story.tell("session:start")
    story.tell("execution:start", prompt="Tidy up")
    story.tell("prompt:submit", prompt="Tidy up")
    story.tell(
        "provider:request",
        span="m1",
        above="t" * 16,
        iteration=0,
        provider="p",
        model="big",
        messages="4",
    )
    story.tell(
        "hook:decided",
        span="m1",
        iteration=0,
        hook_event="provider:request",
        module="hooks-x",
        handler="h",
        action="inject_context",
        duration=0.25,
        injection={"role": "developer", "content": "It is noon.", "ephemeral": True},
    )
    story.tell("content_block:start", span="m1", iteration=0)
    story.tell(
        "provider:response",
        span="m1",
        iteration=0,
        provider="p",
        model="big",
        duration=2.5,
        usage=USAGE,
        response={
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "text", "text": "I will."},
                {
                    "type": "tool_call",
                    "id": "1",
                    "name": "bash",
                    "input": {"command": "rm x"},
                },
                {"type": "image", "source": "…"},
            ],
            "finish_reason": "tool_calls",
        },
    )
    story.tell(
        "hook:decided",
        span="b1",
        iteration=0,
        hook_event="tool:pre",
        handler="guard",
        action="deny",
        reason="not here",
        changed={"tool_input": {"command": "rm y"}},
    )
    denied = {"type": "denied", "message": "Denied by guard: not here"}
    story.tell(
        "tool:error",
        span="b1",
        iteration=0,
        level="error",
        tool_name="bash",
        tool_input={},
        error=denied,
    )
    story.tell(
        "tool:pre",
        span="r1",
        iteration=0,
        tool_name="read_file",
        tool_input={"path": "a", "lines": [1, 2]},
    )
    story.tell("artifact:read", span="r1", iteration=0, path="/a", bytes=3)
    story.tell(
        "tool:post",
        span="r1",
        iteration=0,
        tool_name="read_file",
        duration=9,
        result={"output": "text"},
    )
    story.tell("context:compaction", iteration=1, before_messages=9, after_messages=3)
    story.tell("provider:request", span="m2", iteration=1, provider="p", model="big")
    story.tell(
        "provider:error",
        span="m2",
        iteration=1,
        provider="p",
        error={"type": "LLMError", "message": "busy"},
    )
    story.tell("prompt:complete", prompt="Tidy up", response="Done.")
    story.tell("execution:end", response="Done.", status="success")


def test_a_turn_is_a_tree_of_its_steps() -> None:
    story = Story()
    a_turn(story)

    trace = build_trace(story.records, "s")

    assert outline(trace) == [
        "turn Turn 1 ok",
        "  iteration Iteration 1 ok",
        "    model p big ok",
        "      decision hooks-x ok",
        "    tool bash denied",
        "      decision guard denied",
        "    tool read_file ok",
        "      note artifact:read ok",
        "  iteration Iteration 2 ok",
        "    note context:compaction ok",
        "    model p failed",
    ]
    assert (trace.title, trace.records, trace.sessions) == ("Tidy up", 17, 1)


def test_steps_know_when_they_were_and_what_they_used() -> None:
    story = Story()
    a_turn(story)
    trace = build_trace(story.records, "s")

    turn, model, tool = (
        row(trace, "Turn 1"),
        row(trace, "p big"),
        row(trace, "read_file"),
    )
    assert (turn.start, turn.end, turn.input_tokens, turn.cost) == (
        0.0,
        16.0,
        900,
        Decimal("0.004"),
    )
    assert (model.start, model.end, model.output_tokens) == (3.0, 6.0, 60)
    assert (tool.start, tool.end) == (9.0, 18.0)
    assert row(trace, "hooks-x").end - row(trace, "hooks-x").start == 0.25
    assert [(call.at, call.cached_tokens) for call in trace.calls] == [(6.0, 300)]
    assert [(cut.calls, cut.text) for cut in trace.compactions] == [
        (1, "9 to 3 messages")
    ]
    totals = trace.totals
    assert (
        totals.turns,
        totals.calls,
        totals.tools,
        totals.decisions,
        totals.problems,
    ) == (1, 2, 2, 2, 3)
    assert (totals.input_tokens, totals.output_tokens, totals.cost, totals.seconds) == (
        900,
        60,
        Decimal("0.004"),
        18.0,
    )


def test_details_say_what_was_said_decided_and_changed() -> None:
    story = Story()
    a_turn(story)
    trace = build_trace(story.records, "s")

    assert sections(row(trace, "Turn 1")) == {"Prompt": "Tidy up", "Answer": "Done."}
    assert sections(row(trace, "p big"))["Answer"] == "I will."
    assert sections(row(trace, "guard")) == {
        "Decision": "deny (tool_input) on tool:pre",
        "Reason": "not here",
        "Changed": '{\n  "tool_input": {\n    "command": "rm y"\n  }\n}',
    }
    assert row(trace, "guard").hint == "deny (tool_input) on tool:pre: not here"
    assert row(trace, "bash").hint == "Denied by guard: not here"
    assert row(trace, "read_file").hint == "path: a, lines: [1, 2]"
    assert sections(row(trace, "p"))["Error"] == "LLMError: busy"


def test_conversation_told_with_what_injected_and_shortened() -> None:
    story = Story()
    a_turn(story)
    trace = build_trace(story.records, "s")

    said = [
        (said.role, trace.rows[said.row].sections[said.section].text)
        for said in trace.said
    ]
    assert [role for role, _ in said] == [
        "user", "developer", "thinking", "assistant", "call", "assistant", "tool", "tool", "compaction"
    ]  # fmt: skip
    assert said[1] == ("developer", "It is noon.")
    assert said[6][1] == "denied: Denied by guard: not here"


def test_a_child_stands_below_the_call_that_made_it() -> None:
    parent = Story("top")
    parent.tell("execution:start", prompt="Ask")
    parent.tell(
        "tool:pre",
        span="task",
        iteration=0,
        tool_name="task",
        tool_input={"agent": "reviewer"},
    )
    child = Story("top-1_reviewer", "top", start=parent.now)
    for turn in ("c1", "c2"):
        child.tell("session:start", turn=turn, span=turn * 8, above="task")
        child.tell(
            "execution:start", turn=turn, span=turn * 8, above="task", prompt="Look"
        )
        child.tell(
            "provider:response",
            turn=turn,
            span=f"m{turn}",
            iteration=0,
            provider="p",
            usage=USAGE,
            response="Yes.",
        )
        child.tell(
            "execution:end", turn=turn, span=turn * 8, above="task", status="success"
        )
    parent.now = child.now
    parent.tell(
        "tool:post",
        span="task",
        iteration=0,
        tool_name="task",
        result={"output": "Yes."},
    )

    trace = build_trace(
        [*parent.records[:2], *child.records, *parent.records[2:]], "top"
    )

    assert outline(trace)[:7] == [
        "turn Turn 1 unfinished",
        "  iteration Iteration 1 ok",
        "    tool task ok",
        "      turn reviewer, turn 1 ok",
        "        iteration Iteration 1 ok",
        "          model p ok",
        "      turn reviewer, turn 2 ok",
    ]
    assert row(trace, "task").input_tokens == 1800
    assert trace.rows[0].cost == Decimal("0.008")
    assert (trace.sessions, trace.totals.turns) == (2, 1)


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("success", "ok"),
        ("cancelled", "cancelled"),
        ("denied", "denied"),
        ("error", "failed"),
    ],
)
def test_a_turn_ends_as_the_log_says(status: str, shown: str) -> None:
    story = Story()
    story.tell("execution:start", prompt="x")
    story.tell("execution:end", status=status)
    assert outline(build_trace(story.records, "s")) == [f"turn Turn 1 {shown}"]


def test_what_has_no_turn_stands_for_itself() -> None:
    story = Story()
    story.tell(
        "module:load_failed", turn=None, span=None, level="error", module_id="tool-x"
    )
    story.tell(
        "hook:decided",
        turn=None,
        span=None,
        hook_event="session:start",
        handler="h",
        action="continue",
    )
    story.tell(
        "tool:post",
        turn=None,
        span=None,
        tool_name="t",
        result={"success": False, "error": {"message": "no"}},
    )
    story.tell("provider:response", turn=None, span=None, provider="p", response=None)
    assert outline(build_trace(story.records, "s")) == [
        "note module:load_failed failed",
        "decision h ok",
        "tool t failed",
        "model p ok",
    ]


def test_a_decision_on_a_whole_turn_belongs_to_the_turn() -> None:
    story = Story()
    story.tell("prompt:submit", prompt="x")
    story.tell(
        "hook:decided",
        hook_event="tool:selecting",
        handler="h",
        action="ask_user",
        question="Shall it?",
    )
    story.tell(
        "hook:decided",
        hook_event="prompt:submit",
        span="other",
        handler="i",
        action="modify",
        message="m",
    )
    assert outline(build_trace(story.records, "s")) == [
        "turn Turn 1 unfinished",
        "  decision h ok",
        "  decision i ok",
    ]


def test_nothing_is_a_trace_of_nothing() -> None:
    trace = build_trace([], "s")
    assert (trace.rows, trace.began, trace.totals.cost) == ((), "", None)
    assert "<svg" not in render_page(trace)


IDS = st.none() | st.sampled_from(["1", "2", "3"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=5,
)
KEYS = [
    "prompt",
    "response",
    "usage",
    "error",
    "tool_name",
    "tool_input",
    "result",
    "injection",
    "changed",
]
MORE_KEYS = [
    "hook_event",
    "action",
    "duration",
    "status",
    "messages",
    "provider",
    "module",
    "reason",
]
RECORDS = st.builds(
    LogRecord,
    ts=st.sampled_from(
        [
            "",
            "x",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01T00:00:09.5Z",
            "0001-01-01",
            "9999-12-31",
        ]
    ),
    level=st.sampled_from(["info", "warning", "error"]),
    event=st.sampled_from(
        [
            *(
                "session:start",
                "execution:start",
                "prompt:submit",
                "prompt:complete",
                "execution:end",
                "my:own",
            ),
            *(
                "provider:request",
                "provider:response",
                "provider:error",
                "tool:pre",
                "tool:post",
                "tool:error",
            ),
            *("hook:decided", "context:compaction", "content_block:end"),
        ]
    ),
    session_id=st.sampled_from(["s", "child"]),
    seq=st.integers(0, 9),
    parent_id=st.none() | st.just("s"),
    turn_id=IDS,
    span_id=IDS,
    parent_span_id=IDS,
    iteration=st.none() | st.integers(-1, 2),
    data=st.dictionaries(
        st.sampled_from([*KEYS, *MORE_KEYS]),
        VALUES
        | st.fixed_dictionaries(
            {
                "content": st.lists(VALUES, max_size=2),
                "tool_calls": VALUES,
                "type": VALUES,
            }
        )
        | st.fixed_dictionaries(
            {"input_tokens": VALUES, "output_tokens": VALUES, "cost_usd": VALUES}
        ),
        max_size=5,
    ),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RECORDS, max_size=12))
def test_whatever_a_log_holds_there_is_a_page_of_it(records: list[LogRecord]) -> None:
    trace = build_trace(records, "s")

    assert all(
        later.depth <= before.depth + 1 for before, later in pairwise(trace.rows)
    )
    assert all(0 <= row.start <= row.end for row in trace.rows)
    assert all(trace.rows[said.row].sections[said.section] for said in trace.said)
    top = [row for row in trace.rows if row.depth == 0]
    assert sum(row.input_tokens for row in top) == trace.totals.input_tokens
    page = ReadPage(render_page(trace))
    assert len(page.data["rows"]) == len(trace.rows)
    assert page.scripts["script"].count("JSON.parse") == 1


# -- texts


def test_long_texts_are_cut_and_their_size_is_told() -> None:
    texts = Texts(longest=10, total=25)
    assert texts.of("x" * 10) == "x" * 10
    assert texts.of("y" * 1_000_000) == "y" * 10 + "\n… 1,000,000 characters in all"
    assert texts.of({"a": "b"}).startswith('{\n  "a": "')
    assert Texts(longest=1000, total=0).of("z" * 999).startswith("z" * 200 + "\n…")


def test_what_browsers_obey_is_shown() -> None:
    assert Texts().of("a\x00\u202eb\ud800\tc\n") == "a\\x00\\u202eb\\ud800\tc\n"
    assert words("a\x1b[1m\n  b" + "c" * 300) == "a\\x1b[1m b" + "c" * 149 + "…"
    assert words(None) == ""


def test_deep_data_are_written_as_far_as_they_can_be() -> None:
    deep: object = 1
    for _ in range(600):
        deep = [deep]
    assert "1" in Texts(longest=10**7).of(deep)  # type: ignore[arg-type]  # lists of lists
    for _ in range(200_000):
        deep = [deep]
    assert "too deep" in Texts().of(deep)  # type: ignore[arg-type]
    assert "too deep" in words(deep)  # type: ignore[arg-type]


def test_an_answer_is_whatever_the_provider_gave() -> None:
    story = Story()
    calls = [{"name": "t", "arguments": {}}]
    story.tell(
        "provider:response",
        span="1",
        provider="p",
        response={"content": None, "tool_calls": calls},
    )
    story.tell(
        "provider:response",
        span="2",
        provider="q",
        response={"content": [7, {"thinking": "?"}]},
    )
    story.tell("tool:pre", span="3", tool_name="t", tool_input="no mapping")
    trace = build_trace(story.records, "s")

    assert sections(row(trace, "p")) == {
        "Calls": '{\n  "name": "t",\n  "arguments": {}\n}'
    }
    assert [section.text for section in row(trace, "q").sections] == [
        "7",
        '{\n  "thinking": "?"\n}',
    ]
    assert row(trace, "t").hint == "no mapping"
