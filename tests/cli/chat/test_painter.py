"""What of a turn is shown, and how."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from amplifier.app.settings.schema import DisplaySettings
from amplifier.cli._chat._markdown import Rendering, wrapped
from amplifier.cli._chat._painter import Painter
from amplifier.cli._chat._stream import LineStream
from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.chat import Degradation, ToolCall, Usage
from amplifier_sdk.configuration import read_config
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.progress import ToolOutput, ToolProgress
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import (
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UsageReported,
)

CALL = ToolCall(id="1", name="bash", arguments={"command": "make"})
TOKEN = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
USAGE = Usage(
    input_tokens=1200, output_tokens=30, total_tokens=1230, cost_usd=Decimal("0.25")
)


def paint(
    *events: StreamEvent, live: bool = True, **display: bool
) -> tuple[str, Painter]:
    written: list[str] = []
    plain = Rendering(is_rich=False, has_colour=False)
    redactor = SinkRedactor(StrictRedactor())
    shown = read_config(DisplaySettings, {**display}, subject="display")
    painter = Painter(
        written.append, (lambda: None) if live else None, plain, redactor, shown
    )
    for event in events:
        painter.paint(event)
    return "".join(written), painter


def test_what_is_not_whole_stands_above_the_prompt() -> None:
    text, painter = paint(
        TextDelta(text="one\n\ntwo three fo"), ThinkingDelta(text="hm ")
    )
    assert text.startswith("one\n\n")
    assert painter.live(40) == "thinking..."
    _, painter = paint(TextDelta(text="word " * 100), ToolStarted(call=CALL))
    assert painter.live(40).startswith("tool bash make (")
    _, painter = paint(TextDelta(text="word " * 100))
    assert len(painter.live(40).split("\n")) <= 8


@pytest.mark.parametrize("live", [True, False], ids=["live", "plain"])
def test_a_tool_tells_how_far_it_is_and_what_it_put_out(live: bool) -> None:
    output = "".join(f"line {number}\n" for number in range(12))
    events = (
        ToolStarted(call=CALL),
        ToolProgress(
            call_id="1", tool_name="bash", message="compiling", done=3, total=10
        ),
        ToolOutput(call_id="1", tool_name="bash", text=output),
    )
    text, painter = paint(*events, live=live)
    assert "| line 7\n" in text
    assert "line 8" not in text
    assert ("compiling (3 of 10)" in text) is not live
    assert "compiling (3 of 10)" in painter.live(60)
    text, _ = paint(
        *events,
        ToolFinished(call=CALL, result=ToolResult(success=True, output="x")),
        live=live,
    )
    assert "  | ... 4 more lines" in text
    assert "tool bash make" in text


def test_tool_that_failed_told_also_where_tools_are_not_shown() -> None:
    failed = ToolFinished(call=CALL, result=ToolResult.failure("no such target"))
    text, _ = paint(ToolStarted(call=CALL), failed, show_tool_lines=False)
    assert text.startswith("tool bash failed after")
    assert "no such target" in text
    fine = ToolFinished(call=CALL, result=ToolResult(output="x"))
    text, _ = paint(ToolStarted(call=CALL), fine, show_tool_lines=False)
    assert text == ""
    progress = ToolProgress(call_id="9", tool_name="x", message="lost")
    text, _ = paint(progress, ToolOutput(call_id="9", tool_name="x", text="a"))
    assert text == ""


EDIT = ToolCall(
    id="2", name="edit_file", arguments={"file_path": "a.md", "old_string": "x\ny"}
)
DIFF = "@@ -1,2 +1 @@\n-x\n-y\n+\x1b[2Jz\n"


def test_an_edit_is_one_line_and_its_diff_in_colours() -> None:
    edited = ToolFinished(call=EDIT, result=ToolResult(output={"diff": DIFF}))
    text, painter = paint(ToolStarted(call=EDIT), edited)

    assert text.startswith("tool edit_file a.md, old_string: x y (")
    assert text.endswith("\n@@ -1,2 +1 @@\n-x\n-y\n+\\x1b[2Jz\n")

    painter.rendering = Rendering(is_rich=False, has_colour=True)
    painter.write = (written := list[str]()).append
    painter.paint(edited)
    assert "\x1b[31m-x" in "".join(written)


def test_a_diff_that_a_question_showed_is_not_shown_again() -> None:
    edited = ToolFinished(call=EDIT, result=ToolResult(output={"diff": DIFF}))
    _, painter = paint(ToolStarted(call=EDIT))
    painter.asked.append(f"edit_file\nChanges a.md:\n{DIFF}\nRisk: medium")
    painter.write = (written := list[str]()).append

    painter.paint(edited)
    assert "@@" not in "".join(written)


def test_of_a_long_diff_the_beginning_is_shown() -> None:
    diff = "@@ -0,0 +1,100 @@\n" + "+line\n" * 100
    edited = ToolFinished(call=EDIT, result=ToolResult(output={"diff": diff}))
    text, painter = paint(ToolStarted(call=EDIT), edited)

    assert text.count("+line\n") == 39
    assert "... 61 more lines, Ctrl-O or /expand shows them" in text
    whole = painter.outputs.latest(1)
    assert whole.has_diff
    assert whole.text(painter.redactor).count("+line") == 100


def test_what_is_opened_has_no_quotes_and_no_secrets() -> None:
    found: JSONValue = {
        "file_path": "a.md",
        "content": f"one\n{TOKEN}\n",
        "token": ["swordfish"],
        "more": False,
    }
    finished = ToolFinished(call=EDIT, result=ToolResult(output=found))
    _, painter = paint(ToolStarted(call=EDIT), finished)

    assert painter.outputs.latest(1).text(painter.redactor).split("\n") == [
        "tool edit_file a.md, old_string: x y",
        "file_path: a.md",
        "old_string:",
        "  x",
        "  y",
        "file_path: a.md",
        "content:",
        "  one",
        "  [REDACTED:github-token]",
        "token:",
        "  - [REDACTED:secret]",
        "more: no",
    ]


def test_the_end_says_what_it_cost_and_what_is_missing() -> None:
    end = TurnFinished(
        text="all of it",
        usage=USAGE,
        finish_reason="length",
        limit="iterations",
        tool_calls=3,
        degradations=(Degradation(requested="a", actual="b", reason="c"),),
    )
    text, painter = paint(UsageReported(provider="x", usage=USAGE, total=USAGE), end)
    assert text.startswith("all of it\n")
    assert "its limit 'iterations' is reached" in text
    assert "the model stopped because of 'length'" in text
    assert (
        "warning: the model does not support what was asked: b instead of a: c" in text
    )
    assert "1,200 in, 30 out tokens, $0.25, 3 tool calls, " in text
    assert painter.usage == USAGE
    text, _ = paint(TextDelta(text="all of it"), end, show_usage=False)
    assert text.count("all of it") == 1
    assert "tokens" not in text


def test_no_split_or_multiline_secret_is_shown() -> None:
    body = [f"MIIEowIBAAKCAQEA{number}x7bq98Lk0v7mX2dW1zq8KdP4s" for number in range(3)]
    text = "\n".join(
        [
            "-----BEGIN RSA PRIVATE KEY-----",
            *body,
            "-----END RSA PRIVATE KEY-----",
            f"a {TOKEN}",
        ]
    )
    pieces = [text[start : start + 40] for start in range(0, len(text), 40)]
    put_out = [
        ToolOutput(call_id="1", tool_name="bash", text=piece) for piece in pieces
    ]

    shown, _ = paint(
        ToolStarted(call=CALL),
        *put_out,
        ToolFinished(call=CALL, result=ToolResult(output="x")),
    )
    assert shown.splitlines()[:2] == [
        "  | [REDACTED:private-key]",
        "  | a [REDACTED:github-token]",
    ]


def test_a_line_that_comes_in_pieces_is_one_line() -> None:
    pieces = ["one li", "ne\r", "\nand another", "\n", *["more\n"] * 20, "the l", "ast"]
    put_out = [
        ToolOutput(call_id="1", tool_name="bash", text=piece) for piece in pieces
    ]

    shown, _ = paint(
        ToolStarted(call=CALL),
        *put_out,
        ToolFinished(call=CALL, result=ToolResult(output="x")),
    )
    assert shown.splitlines()[:3] == ["  | one line", "  | and another", "  | more"]
    assert "... 15 more lines" in shown


@pytest.mark.parametrize("live", [True, False], ids=["live", "plain"])
def test_arguments_lose_what_stands_under_the_name_of_a_secret(live: bool) -> None:
    shown, painter = paint(
        ToolStarted(
            call=ToolCall(id="1", name="x", arguments={"password": "swordfish"})
        ),
        live=live,
    )

    assert "[REDACTED:password]" in shown + painter.live(60)
    assert "swordfish" not in shown + painter.live(60)


def test_markdown_is_laid_out_and_obeys_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rich = Rendering(is_rich=True, has_colour=False)
    text = rich.block(
        "**bold** [link](http://example.org/\x1b]0;x) :smile: [red]x[/red]\x1b[31m "
        + "word " * 30
    )
    assert "\x1b" not in text
    assert "http://example.org/" in text
    assert "[red]x[/red]" in text
    assert ":smile:" in text
    assert max(map(len, text.splitlines())) < 60
    assert "\x1b[" in Rendering(is_rich=True, has_colour=True).block(
        "**bold**", dim=True
    )
    assert rich.block("*" * 60_000) == "*" * 60_000 + "\n"
    assert rich.line("x", "red") == "x\n"
    assert (
        Rendering(is_rich=True, has_colour=True).line("x", "red").startswith("\x1b[31m")
    )


def test_answers_of_commands_are_wrapped_between_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    path = "/a/very/long/path/that/stays/whole/in/any/case"
    lines = wrapped(f"one two three four five six seven\nWritten: {path}").split("\n")
    assert lines[:2] == ["one two three four five six", "  seven"]
    assert path in lines[-1]


def test_what_others_write_is_handed_on_by_whole_lines() -> None:
    taken: list[str] = []
    stream = LineStream(taken.append, is_terminal=True)
    assert stream.writable()
    assert stream.isatty()
    stream.write("one\ntwo\nth")
    other = threading.Thread(target=stream.write, args=("ree\n",))
    other.start()
    other.join()
    stream.write("rest")
    stream.finish()
    stream.finish()
    assert taken == ["one\ntwo\n", "three\n", "rest\n"]


def test_columns_of_an_output_stay_and_marks_are_escaped() -> None:
    text = "a\t b   c \x1b[2J \u3164\n"
    shown, _ = paint(
        ToolStarted(call=CALL),
        ToolOutput(call_id="1", tool_name="bash", text=text),
        ToolFinished(call=CALL, result=ToolResult(output="x")),
    )
    assert shown.splitlines()[0] == "  | a        b   c \\x1b[2J \\u3164"
