"""What is written of a turn, whatever a model writes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast, get_args, get_type_hints

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amplifier.cli._exits import SignalledError, describe
from amplifier.cli._output import EventLines, Output, TextAnswer, make_writer
from amplifier.cli._terminal import one_line, visible
from amplifier_sdk import streaming
from amplifier_sdk.chat import Degradation, ToolCall, Usage
from amplifier_sdk.errors import (
    ConfigError,
    LLMError,
    ModuleNotFoundError,
    Problem,
    ToolError,
)
from amplifier_sdk.progress import ToolOutput, ToolProgress, ToolReport
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
from tests.cli.programs import PROGRAM, open_terminal, write_plan

ROOT = Path(__file__).resolve().parents[2]
_ANY_TEXT = st.text(st.characters(exclude_categories=[]))
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


@given(_ANY_TEXT)
def test_visible_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = visible(text)

    assert _OBEYED.search(shown) is None
    assert visible(shown) == shown
    assert shown == text or _OBEYED.search(text)


@given(_ANY_TEXT, st.integers(10, 50))
def test_a_line_is_one_line_and_no_longer_than_asked(text: str, width: int) -> None:
    line = one_line(text, width)

    assert len(line.splitlines()) <= 1 or "\u2028" in line or "\u2029" in line
    assert len(line) <= width


@given(st.lists(_ANY_TEXT))
@example([" "])
@example(["a", "\n", "\n"])
def test_a_text_is_the_same_in_whatever_pieces_it_comes(pieces: list[str]) -> None:
    whole = "".join(pieces)

    assert _written(pieces) == _written([whole]) == _written([], answer=whole)


@given(_ANY_TEXT.filter(lambda text: text.strip("\n") != ""))
def test_an_answer_ends_in_one_line_end(text: str) -> None:
    written = _written([text])

    assert written.endswith("\n")
    assert not written.endswith("\n\n")


def _written(pieces: list[str], answer: str | None = None) -> str:
    stream = BytesIO()
    writer = TextAnswer(Output(stream))
    for piece in pieces:
        writer.write(TextDelta(text=piece))
    writer.write(TurnFinished(text="".join(pieces) if answer is None else answer))
    return stream.getvalue().decode()


@pytest.mark.parametrize("form", ["json", "ndjson"])
@given(text=_ANY_TEXT, name=_ANY_TEXT)
def test_json_is_valid_and_safe_whatever_stands_in_it(
    form: str, text: str, name: str
) -> None:
    stream = BytesIO()
    writer = make_writer(form, Output(stream, "ascii"), "s")
    call = ToolCall(id="c", name=name, arguments={text: text})
    writer.write(ToolStarted(call=call))
    writer.write(ToolProgress(call_id="c", tool_name=name, message=text, done=1))
    writer.write(ToolOutput(call_id="c", tool_name=name, text=text))
    writer.write(ToolFinished(call=call, result=ToolResult(output=text)))
    writer.write(TurnFinished(text=text))

    lines = stream.getvalue().decode("utf-8").split("\n")
    assert lines.pop() == ""
    assert [_OBEYED.search(line) for line in lines] == [None] * len(lines)
    last = [json.loads(line) for line in lines][-1]
    assert last["text"] == re.sub("[\ud800-\udfff]", "\ufffd", text)


def test_what_stands_beside_the_answer_begins_on_a_line_of_its_own() -> None:
    with (
        TemporaryFile(buffering=0) as file,
        open(file.fileno(), "w+", encoding="utf-8", closefd=False) as screen,
    ):
        writer = TextAnswer(Output(cast("BinaryIO", file)))
        beside = writer.beside(screen)

        print("first", file=beside, flush=True)
        writer.write(TextDelta(text="Let me"))
        print("second", file=beside, flush=True)
        writer.write(TextDelta(text=" see.\n"))
        print("third", file=beside, flush=True)
        writer.write(TurnFinished(text="Let me see.\n"))
        screen.seek(0)

        assert screen.read() == "first\nLet me\nsecond\n see.\nthird\n"
        assert (beside.encoding, beside.errors) == (screen.encoding, screen.errors)
        assert (beside.isatty(), beside.writable()) == (False, True)
        assert beside.fileno() == screen.fileno()


@pytest.mark.process
def test_what_a_hook_shows_at_the_terminal_has_lines_of_its_own(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, ["The end."], "hooks-streaming-ui")
    with open_terminal(*PROGRAM, "run", "go", "--plan", str(plan)) as terminal:
        seen = terminal.read_until("0 tool calls")

        assert terminal.wait() == 0
    lines = [line.lstrip("\x1b[2m") for line in seen.splitlines()]
    assert lines[-2:] == ["The end.", "tokens: 1 in, 2 out; 1 request; 0 tool calls"]


def _edited(diff: str, *, shows_diffs: bool) -> None:
    """Write the end of an edit with its diff."""
    writer = TextAnswer(Output(BytesIO()), shows_diffs=shows_diffs)
    call = ToolCall(id="c", name="edit_file", arguments={})
    result = ToolResult(output={"diff": diff})
    writer.write(ToolFinished(call=call, result=result))


def test_the_diff_of_an_edit_that_nobody_was_asked_about_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two \x1b[31m\n"
    _edited(diff, shows_diffs=False)
    assert capsys.readouterr().err == ""

    _edited(diff, shows_diffs=True)
    assert capsys.readouterr().err.splitlines() == [
        "--- a/x",
        "+++ b/x",
        "@@ -1 +1 @@",
        "-one",
        f"+two {visible(chr(27))}[31m",
    ]

    _edited("+a\n" * 250, shows_diffs=True)
    assert capsys.readouterr().err.endswith("+a\n... 50 more lines\n")


def test_what_a_tool_reports_is_told_beside_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = BytesIO()
    writer = TextAnswer(Output(stream))

    writer.write(TextDelta(text="Let me see"))
    writer.write(ToolProgress(call_id="c", tool_name="build", message="compiling"))
    writer.write(
        ToolProgress(
            call_id="c", tool_name="build", message="compiling", done=3, total=10
        )
    )
    writer.write(ToolProgress(call_id="c", tool_name="build", done=0.5))
    writer.write(ToolOutput(call_id="c", tool_name="build", text="one\ntwo \x1b[31m\n"))

    assert stream.getvalue() == b"Let me see\n"
    assert capsys.readouterr().err.splitlines() == [
        "tool build: compiling",
        "tool build: compiling (3 of 10)",
        "tool build: 0.5",
        "tool build | one",
        f"tool build | two {visible(chr(27))}[31m",
    ]


def test_arguments_without_a_json_form_are_told_as_python_text() -> None:
    stream = BytesIO()
    writer = make_writer("ndjson", Output(stream), "s")

    writer.write(
        ToolStarted(call=ToolCall(id="c", name="t", arguments={"x": float("nan")}))
    )

    assert json.loads(stream.getvalue())["arguments"] == "{'x': nan}"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConfigError([Problem("a.b", "wrong")], subject="plan"), "plan: a.b: wrong"),
        (
            ConfigError([Problem("a", "x"), Problem("b", "y")], subject="plan"),
            "The plan has 2 problems:\n  a: x\n  b: y",
        ),
        (
            LLMError("down", provider="p", retryable=True),
            "provider p: down; trying again may help",
        ),
        (LLMError("down", provider="p"), "provider p: down"),
        (LLMError("down"), "down"),
        (
            ModuleNotFoundError("tool-x", "not found"),
            "Module 'tool-x': not found; 'amplifier module add tool-x --source FOLDER' adds one of yours",
        ),
        (
            ModuleNotFoundError("tool-x", "not found. Searched a. There are: tool-y"),
            (
                "Module 'tool-x': not found.\n  Searched a.\n  There are: tool-y\n"
                "  'amplifier module add tool-x --source FOLDER' adds one of yours"
            ),
        ),
        (ToolError(""), "there is no message"),
        (SignalledError(15), "Ended by signal 15"),
        (click.ClickException("no such thing"), "no such thing"),
        (KeyError("k"), "unexpected: 'k'; --debug shows where it comes from"),
        (
            TimeoutError(),
            "nothing answered in time; try again; --debug shows where it comes from",
        ),
        (ExceptionGroup("several", [LLMError("a"), LLMError("b")]), "a; b"),
    ],
)
def test_an_error_says_what_and_where(error: Exception, text: str) -> None:
    assert describe(error) == text


@pytest.mark.parametrize(
    ("reason", "is_reported"), [("length", True), ("stop", False), (None, False)]
)
def test_an_answer_that_is_cut_is_told_apart_from_a_whole_one(
    reason: str | None, is_reported: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    TextAnswer(Output(BytesIO())).write(TurnFinished(text="half", finish_reason=reason))

    assert ("incomplete" in capsys.readouterr().err) is is_reported


@pytest.mark.parametrize(
    ("limit", "reported"),
    [("tokens", "the turn ended early: its limit 'tokens' is reached"), (None, "")],
)
def test_an_answer_that_a_limit_cut_short_says_which(
    limit: str | None, reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    TextAnswer(Output(BytesIO())).write(TurnFinished(text="so far", limit=limit))

    told_to_the_person = capsys.readouterr().err
    assert reported in told_to_the_person
    assert (told_to_the_person == "") is (limit is None)


def test_an_answer_that_is_not_as_asked_says_in_what(
    capsys: pytest.CaptureFixture[str],
) -> None:
    degradation = Degradation(requested="a", actual="b", reason="c \x1b")
    output = BytesIO()

    TextAnswer(Output(output)).write(
        TurnFinished(text="said", degradations=(degradation,))
    )
    make_writer("json", Output(output), "s").write(
        TurnFinished(text="said", degradations=(degradation,))
    )

    assert (
        capsys.readouterr().err
        == "warning: the model does not support what was asked: b instead of a: c \\x1b\n"
    )
    record = json.loads(output.getvalue().splitlines()[-1])
    assert record["degradations"] == [
        {"requested": "a", "actual": "b", "reason": "c \x1b"}
    ]


_CALL = ToolCall(id="c", name="t", arguments={})
_USAGE = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
EVENTS: Sequence[StreamEvent] = (
    TextDelta(text="a"),
    ThinkingDelta(text="a"),
    ToolCallDelta(id="c", name="t", arguments="{"),
    ToolStarted(call=_CALL),
    ToolProgress(call_id="c", tool_name="t"),
    ToolOutput(call_id="c", tool_name="t", text="a"),
    ToolFinished(call=_CALL, result=ToolResult(output="a")),
    UsageReported(provider="p", usage=_USAGE, total=_USAGE),
    SteeringInjected(text="a"),
    TurnFinished(text="a"),
)


def test_the_page_names_every_line_with_its_keys() -> None:
    names = {**vars(streaming), "ToolReport": ToolReport}
    assert {type(event) for event in EVENTS} == set(
        get_args(get_type_hints(EventLines.write, names)["event"])
    )
    stream = BytesIO()
    writer = make_writer("ndjson", Output(stream), "s")
    for event in EVENTS:
        writer.write(event)
    writer.fail(LLMError("down"))

    _, _, table = (
        (ROOT / "docs/reference/cli.md")
        .read_text("utf-8")
        .partition("The lines of `ndjson`")
    )
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    for line in map(json.loads, stream.getvalue().splitlines()):
        row = next(row for row in rows if f"`{line['type']}`" in row)
        assert [key for key in line if key != "type" and f"`{key}`" not in row] == []


def test_event_lines_tell_usage_and_text_typed_meanwhile() -> None:
    stream = BytesIO()
    writer = make_writer("ndjson", Output(stream), "s")
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)

    writer.write(UsageReported(provider="p", usage=usage, total=usage + usage))
    writer.write(SteeringInjected(text="Shorter."))
    writer.write(TurnFinished(text="", unread=("Too late.",)))

    used, typed, end = map(json.loads, stream.getvalue().splitlines())
    assert (
        used["type"],
        used["provider"],
        used["usage"]["total_tokens"],
        used["total"]["total_tokens"],
    ) == (
        *("usage", "p"),
        *(3, 6),
    )
    assert typed == {"type": "steering_injected", "text": "Shorter."}
    assert end["unread"] == ["Too late."]
