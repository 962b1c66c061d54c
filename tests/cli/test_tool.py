"""Tools at the command line: listed, described, called once through a session."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier.app.directories import AppDirs
from amplifier.app.sessions.tool_calls import read_arguments
from tests.cli.programs import call, write_plan

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
JSON = (
    SCALARS
    | st.lists(SCALARS, max_size=3)
    | st.dictionaries(st.text(max_size=3), SCALARS, max_size=3)
)


def plan(folder: Path, *modules: str) -> str:
    return str(write_plan(folder, [], "tool-trials", *modules))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_tools_are_listed_and_described(tmp_path: Path) -> None:
    listed = call("tool", "list", "--plan", plan(tmp_path)).stdout
    assert [line.split()[:2] for line in listed.splitlines()[1:]] == [
        [name, "unknown"] for name in ("block", "fail", "receive", "speak", "wait")
    ]
    shown = call("tool", "show", "receive", "--plan", plan(tmp_path)).stdout
    assert shown.startswith("receive (unknown)\nWait until somebody writes")
    assert "path      string  required" in shown
    data = json.loads(
        call("tool", "show", "receive", "--plan", plan(tmp_path), "--json").stdout
    )
    assert data["input_schema"]["required"] == ["path"]
    assert data["effects"] is None
    assert (
        len(json.loads(call("tool", "list", "--plan", plan(tmp_path), "--json").stdout))
        == 5
    )
    assert (
        "did you mean 'speak'"
        in call("tool", "show", "speek", "--plan", plan(tmp_path), expect=1).stderr
    )


def test_a_look_at_the_tools_runs_no_hook_and_leaves_no_log(tmp_path: Path) -> None:
    logged = plan(tmp_path, "hooks-logging", "hooks-tells")
    sessions = AppDirs.find().state / "sessions"
    call("tool", "list", "--plan", logged)
    call("tool", "show", "speak", "--plan", logged)
    assert not sessions.exists()
    call("tool", "invoke", "speak", "--plan", logged)
    assert len(list(sessions.glob("*/events.jsonl"))) == 1


def test_a_session_without_tools_says_so(tmp_path: Path) -> None:
    assert (
        "has no tool"
        in call("tool", "list", "--plan", str(write_plan(tmp_path, []))).stderr
    )


def test_a_person_s_own_edit_needs_no_reading_before(folder: Path) -> None:
    (folder / "notes.txt").write_text("old\n")
    edit = ("file_path=notes.txt", "old_string=old", "new_string=new")
    made_of = ("--plan", str(write_plan(folder, [], "tool-filesystem")))

    call("tool", "invoke", "edit_file", *edit, *made_of)

    assert (folder / "notes.txt").read_text() == "new\n"


def test_a_tool_is_called_and_only_its_result_is_printed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("line\n\x1b[31mred")
    assert call("tool", "invoke", "speak", "--plan", plan(tmp_path)).stdout == "said\n"
    notes = f"path={tmp_path / 'notes.txt'}"
    assert (
        call("tool", "invoke", "receive", notes, "--plan", plan(tmp_path)).stdout
        == "line\n\\x1b[31mred\n"
    )
    data = json.loads(
        call(
            "tool", "invoke", "receive", notes, "--plan", plan(tmp_path), "--json"
        ).stdout
    )
    assert data == {
        "tool": "receive",
        "success": True,
        "output": "line\n\x1b[31mred",
        "error": None,
    }


def test_a_tool_that_fails_ends_with_1(tmp_path: Path) -> None:
    failed = call("tool", "invoke", "fail", "--plan", plan(tmp_path), expect=1)
    assert failed.stdout == ""
    assert "is full" in failed.stderr
    data = json.loads(
        call(
            "tool", "invoke", "fail", "--plan", plan(tmp_path), "--json", expect=1
        ).stdout
    )
    assert not data["success"]
    assert "is full" in data["error"]["message"]


def test_arguments_are_checked_by_the_schema_of_the_tool(tmp_path: Path) -> None:
    output = call(
        "tool", "invoke", "receive", "pat=x", "--plan", plan(tmp_path), expect=1
    ).stderr
    assert "did you mean 'path'" in output


@pytest.mark.parametrize(
    "arguments",
    [["path"], ["=x"], ["path=a", "path=b"]],
    ids=["no value", "no key", "twice"],
)
def test_what_is_no_argument_is_wrong_usage(
    tmp_path: Path, arguments: list[str]
) -> None:
    call("tool", "invoke", "receive", *arguments, "--plan", plan(tmp_path), expect=2)


def test_an_unknown_tool_is_told_with_the_nearest(tmp_path: Path) -> None:
    assert (
        "did you mean 'speak'"
        in call("tool", "invoke", "speek", "--plan", plan(tmp_path), expect=1).stderr
    )


def test_hooks_decide_about_call_and_are_asked_at_terminal(
    tmp_path: Path,
) -> None:
    asking = plan(tmp_path, "hooks-asks")
    denied = call("tool", "invoke", "speak", "--plan", asking, expect=1)
    assert denied.stdout == ""
    assert "Denied" in denied.stderr
    allowed = call("tool", "invoke", "speak", "--plan", asking, "--yes")
    assert allowed.stdout == "said\n"
    assert "allowed by --yes: speak {} Shall it?" in allowed.stderr


def test_a_tool_needs_no_provider(tmp_path: Path) -> None:
    assert (
        call(
            "tool", "invoke", "speak", "--plan", plan(tmp_path, "provider-broken")
        ).stdout
        == "said\n"
    )


def backed_up(tmp_path: Path, *modules: str) -> str:
    (tmp_path / "shop/a.txt").write_text("kept")
    return plan(tmp_path, "tool-filesystem", "hooks-backup", *modules)


def test_backups_of_calls_are_listed_and_cleaned_up(
    tmp_path: Path,
) -> None:
    """Nothing that was backed up is out of reach of the commands."""
    call("run", "Hello", "--plan", str(write_plan(tmp_path, ["one", "two"])))
    call("tool", "invoke", "delete", "path=a.txt", "--plan", backed_up(tmp_path))
    made, other = json.loads(call("session", "list", "--json").stdout)
    assert (made["command"], made["prompt"]) == (
        "tool invoke",
        "amplifier tool invoke delete",
    )
    assert list(Path(made["folder"]).glob("backups/*"))
    assert other["command"] is None

    assert call("continue", "Go on").stdout == "one\n"  # not the one of the call
    call("session", "remove", made["session_id"], "-y")
    assert not Path(made["folder"]).exists()


def test_what_a_session_left_that_was_not_kept_is_cleaned_up(tmp_path: Path) -> None:
    call("config", "set", "sessions.keep", "false")
    call("tool", "invoke", "delete", "path=a.txt", "--plan", backed_up(tmp_path))
    (left,) = (AppDirs.find().state / "sessions").iterdir()
    assert (
        "There is no such session"
        in call("session", "cleanup", "--older-than", "1h").stderr
    )
    for path in (left, *left.rglob("*")):
        os.utime(path, (1, 1))

    assert (
        call("session", "cleanup", "--older-than", "1h", "--dry-run").stdout
        == f"{left.name}\n"
    )
    assert left.exists()
    assert (
        call("session", "cleanup", "--older-than", "1h", "-y").stdout
        == f"{left.name}\n"
    )
    assert not left.exists()


def test_a_call_can_delegate(tmp_path: Path) -> None:
    agent = "---\nmeta: {name: scout, description: Looks around}\n---\nLook.\n"
    home = AppDirs.find().home
    (home / "agents").mkdir(parents=True)
    (home / "agents/scout.md").write_text(agent)
    provider = {"module": "provider-scripted", "config": {"responses": ["seen"]}}
    head = {
        "profile": {"name": "work"},
        "providers": [provider],
        "tools": ["tool-task"],
        "hooks": [],
    }
    (home / "profiles").mkdir()
    (home / "profiles/work.md").write_text(f"---\n{json.dumps(head)}\n---\n")
    words = ("agent=scout", "instruction=Look around", "--profile", "work", "--yes")
    assert "seen" in call("tool", "invoke", "task", *words).stdout
    (made,) = json.loads(call("session", "list", "--json").stdout)
    assert made["spending"]["provider_calls"] == 1


@settings(max_examples=25)
@given(value=JSON)
def test_a_value_is_json_where_it_can_be_read_as_that(value: object) -> None:
    assert read_arguments([f"a={json.dumps(value)}"], {}) == {"a": value}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("hello world", "integer", "hello world"),
        ("a=b=c", "string", "a=b=c"),
        ("007", "string", "007"),
        ("true", "string", "true"),
        ('"a\\nb"', "string", "a\nb"),
        ('"', "string", '"'),
        ('"a"b"', "string", '"a"b"'),
        ("5", "integer", 5),
        ("", "string", ""),
    ],
)
def test_where_text_is_wanted_it_stays_as_it_is_written(
    text: str, kind: str, value: object
) -> None:
    schema = {"properties": {"a": {"type": kind}}}
    assert read_arguments([f"a={text}"], schema) == {"a": value}
