"""The chat in a real terminal: what a person sees at 80 columns, in a dumb terminal, and while it works."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from amplifier_sdk.jsontypes import JSONValue
from tests.cli.panes import SCROLLED, pane
from tests.cli.programs import write_plan

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

MARKDOWN = (
    "# Title\n\nHello **you**, "
    + "word " * 30
    + "\n\n- one\n- two\n\n```python\nx = 1\n```\n\nThe end."
)


def _plan(
    folder: Path,
    *responses: JSONValue,
    loop: str = "loop-streaming",
    hooks: str = "hooks-asks",
) -> Path:
    path = write_plan(folder, responses, "tool-trials", *([hooks] if hooks else []))
    path.write_text(path.read_text("utf-8").replace("loop-basic", loop), "utf-8")
    return path


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")


def test_answer_fits_80_columns_and_input_is_remembered(
    tmp_path: Path,
) -> None:
    with pane(tmp_path, _plan(tmp_path, MARKDOWN, "again", hooks="")) as terminal:
        terminal.type("hello", "Enter")
        # room for the prompt's menu may be made by scrolling
        seen = terminal.until(
            lambda seen: "The end." in seen and "tokens" in seen, *SCROLLED
        )
        assert "> hello" in seen
        assert " • one" in seen
        assert "**" not in seen
        assert "```" not in seen
        terminal.type("first line", "C-j", "second line", "Enter")
        terminal.until(
            lambda seen: (
                re.search(r"^> first line\n  second line\nagain$", seen, re.MULTILINE)
                and "50 tokens" in seen
                and "working" not in seen
            )
        )
        terminal.type("Up", "Up", "Up")
        terminal.until(lambda seen: seen.rstrip().split("\n> ")[-1].startswith("hello"))
        terminal.type("C-c", "/stat")
        terminal.until(lambda seen: "/status  Show the session" in seen)
        terminal.type("Tab")
        terminal.until(lambda seen: "> /status" in seen)


def test_question_takes_place_of_prompt_and_leaves_what_typed(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    first: JSONValue = {
        "text": "begin",
        "tool_calls": [{"name": "receive", "arguments": {"path": str(pipe)}}],
    }
    with pane(tmp_path, _plan(tmp_path, first, "read it")) as terminal:
        terminal.type("go", "Enter")
        terminal.until(lambda seen: "Shall it?" in seen and "Your choice" in seen)
        terminal.type("1", "Enter")
        terminal.until(lambda seen: "working" in seen and "tool receive" in seen)
        terminal.type("and hurry", "Enter", "draft")
        terminal.until(
            lambda seen: "(accepted) and hurry" in seen and "> draft" in seen
        )
        pipe.write_text("go on", "utf-8")
        terminal.until(
            lambda seen: re.search(
                r"^> and hurry$.*^read it$.*^> draft$", seen, re.DOTALL | re.MULTILINE
            )
        )


def test_a_dumb_terminal_gets_plain_lines(tmp_path: Path) -> None:
    with pane(tmp_path, _plan(tmp_path, MARKDOWN, hooks=""), term="dumb") as terminal:
        terminal.type("hello", "Enter")
        seen = terminal.until(
            lambda seen: "tokens" in seen and seen.rstrip().endswith(">"), "-e"
        )
        assert "**you**" in seen
        assert "\x1b" not in seen
        terminal.type("C-c")
        terminal.until(lambda seen: "Ctrl-C again ends the chat" in seen)
        terminal.type("C-d")
        terminal.until(lambda seen: not seen.strip() or "no server" in seen)


def test_a_slow_line_changes_no_key(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    call: JSONValue = {"name": "receive", "arguments": {"path": str(pipe)}}
    plan = _plan(tmp_path, {"tool_calls": [call]}, "not reached", hooks="")
    with pane(tmp_path, plan, delay=0.2) as terminal:
        terminal.type("go", "Enter")
        terminal.until(lambda seen: "tool receive" in seen and "working" in seen)
        # an arrow key begins as Esc does, and stops nothing
        terminal.type("abc", "Left", "Left", "X")
        terminal.until(lambda seen: "> aXbc" in seen and "Stopped" not in seen)
        terminal.type("Escape")
        terminal.until(lambda seen: "Stopped." in seen)


def test_a_wide_terminal_without_colour_gets_none(tmp_path: Path) -> None:
    plan = _plan(tmp_path, MARKDOWN, hooks="")
    with pane(tmp_path, plan, size=(200, 30), NO_COLOR="1") as terminal:
        terminal.type("hello", "Enter")
        seen = terminal.until(
            lambda seen: "The end." in seen and "tokens" in seen, "-e", *SCROLLED
        )
        assert not re.search(r"\x1b\[(?:3[0-7]|9[0-7]|38)", seen)
        terminal.type("/help", "Enter")
        terminal.until(lambda seen: "and the files that it changed" in seen)
