"""The page asks no host for anything, and nothing of a log is obeyed in it."""

from __future__ import annotations

import re
from base64 import b64encode
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pytest

from amplifier.app.logs.library import SessionLogFiles
from amplifier.app.traces.builder import build_trace
from amplifier.app.traces.charts import cost_chart, token_chart
from amplifier.app.traces.model import Compaction, SessionTrace, TracedModelCall
from amplifier.app.traces.page import read_trace, render_page, write_page
from tests.app.logs.records import Story, write_log
from tests.app.traces.pages import ReadPage
from tests.app.traces.test_builder import USAGE, a_turn

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]><svg onload=alert(1)>",
    "{{script}} {{data}}",
    '"><img src=//evil.example/x onerror=alert(1)>',
    "\u2028\u2029\x00\x1b[2J\u202egnp.exe",
    "&lt;b&gt; &amp; \ud800",
    "x" * 1_000_000,
]


def page_of(*texts: str) -> str:
    story = Story(texts[0][:50])
    for text in texts:
        story.tell("execution:start", prompt=text)
        story.tell(
            "tool:pre", span=text[:9], tool_name=text, tool_input={text[:40]: text}
        )
        story.tell("tool:post", span=text[:9], tool_name=text, result={"output": text})
        story.tell(
            "hook:decided",
            span=text[:9],
            hook_event="tool:post",
            handler=text,
            action=text,
            reason=text,
        )
        story.tell(
            "provider:response",
            span="m",
            provider=text,
            usage=USAGE,
            response={"content": text},
        )
        story.tell("context:compaction", before_messages=text)
        story.tell(text, odd=text)
    return render_page(build_trace(story.records, story.session_id))


@pytest.mark.parametrize(
    "text", HOSTILE, ids=[f"hostile{number}" for number in range(len(HOSTILE))]
)
def test_hostile_contents_are_text(text: str) -> None:
    html = page_of(text)
    page, plain = ReadPage(html), ReadPage(page_of("plain"))

    # The same elements as for harmless contents, with the same attributes but for the texts of the charts.
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert [set(found) for _, found in page.elements] == [
        set(found) for _, found in plain.elements
    ]
    assert page.scripts["script"] == plain.scripts["script"]
    assert len(page.data["rows"]) == len(plain.data["rows"])
    assert not re.search(
        "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", html
    )
    assert len(html) < 250_000
    html.encode()


def test_policy_allows_what_stands_in_page_and_nothing_else() -> None:
    html = page_of("plain")
    page = ReadPage(html)
    policy = next(
        str(found["content"])
        for tag, found in page.elements
        if tag == "meta" and "http-equiv" in found
    )

    def digest(text: str) -> str:
        return b64encode(sha256(text.encode()).digest()).decode()

    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{digest(page.scripts['script'])}'",
        f"style-src 'sha256-{digest(page.styles[0])}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_the_page_names_no_host() -> None:
    html = page_of("plain")
    page = ReadPage(html)

    assert "//" not in re.sub(r"^ *// .*$", "", html, flags=re.MULTILINE)
    assert not re.search(
        r"url\(|@import|fetch|XMLHttp|WebSocket|innerHTML|eval|import\(", html
    )
    assert not {"src", "href", "action", "srcset", "style"} & {
        name for _, found in page.elements for name in found
    }
    assert not {"link", "img", "iframe", "object", "base"} & {
        tag for tag, _ in page.elements
    }


def test_the_head_tells_what_a_session_came_to() -> None:
    story = Story("abc")
    a_turn(story)
    texts = "\n".join(ReadPage(render_page(build_trace(story.records, "abc"))).texts)

    for figure in (
        "Tidy up",
        "abc",
        "900",
        "$0.0040",
        "18.00 s",
        "17 records",
        "began 2026-01-01 00:00:01 UTC",
    ):
        assert figure in texts
    assert "sessions" not in texts


# -- charts


def calls(count: int, cost: Decimal | None = None) -> tuple[TracedModelCall, ...]:
    return tuple(
        TracedModelCall(
            at=n,
            model="m",
            input_tokens=n,
            cached_tokens=n // 2,
            output_tokens=1,
            cost=cost,
        )
        for n in range(count)
    )


@pytest.mark.parametrize(
    ("count", "bars"), [(1, 1), (140, 140), (141, 71), (10_000, 139)]
)
def test_a_chart_has_room_for_so_many_bars(count: int, bars: int) -> None:
    trace = SessionTrace(
        session_id="s",
        calls=calls(count),
        compactions=(Compaction(calls=count + 5, text="<9>"),),
    )
    chart = token_chart(trace)
    assert chart.count('class="bar"') == bars
    assert "shortened: &lt;9&gt;" in chart
    assert len(cost_chart(trace)) < 8000


def test_without_costs_tokens_are_summed() -> None:
    assert "Tokens so far" in cost_chart(SessionTrace(session_id="s", calls=calls(3)))
    assert "Cost so far" in cost_chart(
        SessionTrace(session_id="s", calls=calls(3, Decimal(0)))
    )
    assert (
        cost_chart(SessionTrace(session_id="s"))
        == token_chart(SessionTrace(session_id="s"))
        == ""
    )


# -- the file


def test_a_page_is_made_of_logs_and_is_for_the_person_alone(tmp_path: Path) -> None:
    story, child = Story("s"), Story("c", "s")
    a_turn(story)
    child.tell("execution:start", prompt="x")
    child.tell("hook:decided", hook_event="x:y", handler="h", action="deny")
    paths = [
        write_log(tmp_path / "s.jsonl", [*story.records, b"?\n"]),
        write_log(tmp_path / "c.jsonl", child.records),
    ]

    trace = read_trace([SessionLogFiles.of_file(path) for path in paths])
    write_page(trace, tmp_path / "page.html")

    assert (trace.session_id, trace.sessions, trace.records, trace.damaged) == (
        "s",
        2,
        19,
        1,
    )
    page = tmp_path / "page.html"
    assert page.stat().st_mode & 0o777 == 0o600
    assert page.read_text("utf-8") == render_page(trace)
    texts = "\n".join(ReadPage(page.read_text("utf-8")).texts)
    assert "2 sessions" in texts
    assert "1 damaged lines passed over" in texts
