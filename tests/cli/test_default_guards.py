"""What a session that nobody configured asks about, and what it does where nobody can be asked."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amplifier.app.directories import AppDirs
from amplifier.cli import _approval, main
from amplifier_sdk.jsontypes import JSONValue
from tests.cli.programs import BACKENDS, PROGRAM, open_terminal

pytestmark = pytest.mark.process

DENIED = "there is no terminal to ask at; --accept-edits allows edits of files, --yes whatever is asked"
PROFILE = """---
profile: {name: trialEXTENDS}
providers:
  - module: provider-scripted
    config: {responses: RESPONSES}
REST---
"""
BASE = ', extends: "foundation:profiles/base.md"'
UNGUARDED = "session: {orchestrator: loop-basic}\ntools: [tool-filesystem]\nhooks: [hooks-redaction]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a file; no terminal is there for the commands of this process."""
    monkeypatch.setattr(_approval, "TERMINAL", str(tmp_path / "none"))
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    monkeypatch.chdir(folder)
    return folder


def alone(*arguments: str) -> Result:
    """Run a command to its end where nobody can be asked."""
    return CliRunner().invoke(main, list(arguments))


def scripted(*calls: tuple[str, dict[str, JSONValue]], rest: str = "") -> None:
    """Write the profile `trial` whose model makes calls; it is the base profile's where it says nothing itself."""
    steps = [
        {"text": "", "tool_calls": [{"name": name, "arguments": arguments}]}
        for name, arguments in calls
    ]
    responses = json.dumps([*steps, "The end."])
    path = AppDirs.find().home / "profiles" / "trial.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = PROFILE.replace("EXTENDS", "" if rest else BASE).replace(
        "RESPONSES", responses
    )
    path.write_text(text.replace("REST", rest))


def run_trial(*options: str) -> str:
    """Run the profile's turn and return all that was written."""
    done = alone(
        "run", "go", "-P", "trial", "-p", "provider-scripted", "--no-keep", *options
    )
    assert done.exit_code == 0, done.stderr
    return done.output


@pytest.mark.parametrize(
    "profile",
    [(), ("-P", "foundation:base"), ("-P", "foundation:dev")],
    ids=["none", "base", "dev"],
)
def test_reading_in_the_project_asks_nothing_and_deleting_does(
    folder: Path, profile: tuple[str, ...]
) -> None:
    read = alone("tool", "invoke", "read_file", "file_path=a.txt", *profile)
    assert (read.exit_code, "one" in read.stdout) == (0, True)

    refused = alone("tool", "invoke", "delete", "path=a.txt", *profile)

    assert (refused.exit_code, (folder / "a.txt").exists()) == (1, True)
    assert DENIED in refused.stderr


@BACKENDS
@pytest.mark.parametrize("rest", ["", UNGUARDED], ids=["approval", "session"])
def test_nothing_changes_unasked_with_or_without_policy(
    folder: Path, backend: str, rest: str
) -> None:
    scripted(("delete", {"path": "a.txt"}), rest=rest)
    assert DENIED in run_trial("--backend", backend, "--output", "ndjson")
    assert (folder / "a.txt").exists()

    # a deletion is no edit
    assert "Nobody can be asked" in run_trial("--accept-edits", "--output", "ndjson")
    assert (folder / "a.txt").exists()

    assert "allowed by --yes" in run_trial("--yes")
    assert not (folder / "a.txt").exists()


@pytest.mark.parametrize("rest", ["", UNGUARDED], ids=["approval", "session"])
def test_edits_are_accepted_for_a_session_by_one_option(
    folder: Path, rest: str
) -> None:
    scripted(("write_file", {"file_path": "b.txt", "content": "two\n"}), rest=rest)
    run_trial()
    assert not (folder / "b.txt").exists()

    run_trial("--accept-edits")
    assert (folder / "b.txt").read_text() == "two\n"


def test_a_profile_may_say_that_changes_are_not_asked_about(folder: Path) -> None:
    scripted(
        ("delete", {"path": "a.txt"}),
        rest=UNGUARDED.replace("}", ", ask_before_changes: false}"),
    )
    run_trial()
    assert not (folder / "a.txt").exists()


def test_what_goes_on_is_asked_about_too(folder: Path) -> None:
    scripted(("delete", {"path": "a.txt"}))
    begun = alone("run", "go", "-P", "trial", "-p", "provider-scripted", "--keep")
    assert begun.exit_code == 0, begun.stderr
    alone("continue", "again", "-p", "provider-scripted")
    assert (folder / "a.txt").exists()
    alone("continue", "again", "-p", "provider-scripted", "--yes")
    assert not (folder / "a.txt").exists()


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("ls; git status --short", True),
        ("python3 -m this && ls", False),
        ("git push", False),
        ("cat .env", False),
    ],
)
def test_commands_go_by_the_rules_of_the_shell(
    folder: Path, command: str, runs: bool
) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    done = alone("tool", "invoke", "bash", f"command={command}", "-P", "foundation:dev")
    assert (DENIED not in done.stderr) is runs


def test_edit_is_shown_as_diff_and_accepted_for_session(
    folder: Path,
) -> None:
    scripted(
        ("edit_file", {"file_path": "a.txt", "old_string": "one", "new_string": "uno"}),
        ("read_file", {"file_path": "a.txt"}),
        ("edit_file", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}),
        (
            "edit_file",
            {"file_path": "a.txt", "old_string": "two", "new_string": "three"},
        ),
    )
    with open_terminal(
        *PROGRAM, "run", "go", "-P", "trial", "-p", "provider-scripted", "--no-keep"
    ) as terminal:
        seen = terminal.read_until("Your choice")
        terminal.type("Allow edits by write_file, edit_file and move in this session\r")
        after = terminal.read_until("The end.")
        assert terminal.wait() == 0
    assert "-one" in seen
    assert "+two" in seen
    # the file was not read: nobody is asked about what must fail
    assert "+uno" not in seen
    assert "Your choice" not in after.split("in this session", 1)[-1]
    assert (folder / "a.txt").read_text() == "three\n"
