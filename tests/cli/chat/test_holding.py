"""A whole chat in this process, from the session that is opened to the terminal that is left as it was."""

from __future__ import annotations

import json
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.selection import SessionSelector
from amplifier.app.store.store import ProjectSessions
from amplifier.cli._chat._history import HistoryFile
from amplifier.cli._chat.chat_session import converse
from amplifier_sdk.jsontypes import JSONObject
from tests.app.projects import write
from tests.cli.programs import BACKENDS, call, write_plan

TALKS: JSONObject = {"tool_calls": [{"name": "speak", "arguments": {}}]}


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppDirs:
    """A project, the working directory."""
    (tmp_path / "shop/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    return AppDirs.find()


@contextmanager
def typed(keys: str) -> Iterator[None]:
    """Let keys wait at the keyboard of the chat."""
    with (
        create_pipe_input() as pipe,
        create_app_session(input=pipe, output=DummyOutput()),
    ):
        pipe.send_text(keys)
        yield


@BACKENDS
def test_a_chat_is_held_kept_and_goes_on(
    tmp_path: Path, shop: AppDirs, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = PlanOptions(
        file=write_plan(tmp_path, ["# The answer\n\nIt is *one*.", "never"])
    )
    write(shop.home / "commands/bad name.md", "x")
    with typed("hello\r/status\r\x04"):
        converse(options, SessionSelector(keep=True), backend=backend, debug=False)
    out, err = capsys.readouterr()
    assert "It is one." in out
    assert "Turns:    1" in out
    assert "going on without a command" in err
    assert "/help lists the commands" in err
    (stored,) = ProjectSessions.of(shop).all()
    assert stored.record.turn_count == 1
    assert list(HistoryFile(shop.state).load_history_strings()) == ["/status", "hello"]

    with typed("/exit\r"):
        converse(options, SessionSelector(latest=True), backend=backend, debug=False)
    shown = capsys.readouterr().out
    assert (
        shown.index("You")
        < shown.index("hello")
        < shown.index("Agent")
        < shown.index("It is one.")
    )


@BACKENDS
def test_a_chat_leaves_what_waits_for_an_answer(
    tmp_path: Path, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write_plan(tmp_path, [TALKS, "The end."], "tool-trials", "hooks-asks")
    call("run", "--plan", str(plan), "--ask-later", "go", expect=3)
    (asked,) = json.loads(call("questions", "list", "--json").stdout)
    id_ = asked["question_id"]
    latest = SessionSelector(latest=True)
    reported = list[str]()
    for keys in ("/status\r\x04", "\x04"):
        with typed(keys):
            converse(PlanOptions(), latest, backend=backend, debug=False)
        reported.append(capsys.readouterr().err)
        call("answer", id_, "deny", "--no-run")
    continued = call("answer", id_, "deny")

    assert f"question {id_[:12]} waits: speak" in reported[0]
    assert f"'amplifier answer {id_[:12]} allow' or 'deny' continues" in reported[0]
    assert "and a prompt ends it" in reported[0]
    assert f"question {id_[:12]} was answered and not continued" in reported[1]
    assert "The end." in continued.stdout


def test_a_prompt_of_a_chat_ends_what_waited(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, [TALKS, "The end."], "tool-trials", "hooks-asks")
    call("run", "--plan", str(plan), "--ask-later", "go", expect=3)
    (asked,) = json.loads(call("questions", "list", "--json").stdout)
    latest = SessionSelector(latest=True)
    with typed("And now?\r\x04"):
        converse(PlanOptions(), latest, backend="asyncio", debug=False)
    refused = call("answer", asked["question_id"], "deny", expect=1)

    assert "withdrawn by its session" in refused.output


def test_of_a_long_turn_the_end_is_shown_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n\n".join(f"Part {number}." for number in range(60))
    options = PlanOptions(file=write_plan(tmp_path, [text]))
    with typed("hello\r\x04"):
        converse(options, SessionSelector(keep=True), backend="asyncio", debug=False)
    capsys.readouterr()
    with typed("\x04"):
        converse(options, SessionSelector(latest=True), backend="asyncio", debug=False)
    shown = capsys.readouterr().out
    assert shown.startswith("...\n")
    assert "Part 59." in shown
    assert "Part 20." not in shown


def test_what_is_not_kept_leaves_nothing(
    tmp_path: Path, shop: AppDirs, capsys: pytest.CaptureFixture[str]
) -> None:
    with typed("hello\r\x04"):
        converse(
            PlanOptions(file=write_plan(tmp_path, ["one"])),
            SessionSelector(keep=False),
            backend="asyncio",
            debug=False,
        )
    assert "one\n" in capsys.readouterr().out
    assert not shop.state.exists()


def test_a_terminal_that_only_prints_lines_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    typing, ours = pty.openpty()
    with open(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(typing, b"hello\n/exit\n")
        options = PlanOptions(file=write_plan(tmp_path, ["It is *one*."]))
        converse(options, SessionSelector(keep=False), backend="asyncio", debug=False)
    os.close(typing)
    assert "It is *one*.\n" in capsys.readouterr().out
