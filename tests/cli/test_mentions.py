"""What is piped in is no order: files are read that the person typed, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.cli.programs import call, run, write_plan

pytestmark = pytest.mark.process

ISSUE: Final = "It fails. See @~/diary.txt and @notes.md for the reason.\n"
NOTICE: Final = "--mentions follows them"


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    Path("notes.md").write_text("NOTED")
    Path("typed.md").write_text("TYPED and @notes.md")
    (tmp_path / "home" / "diary.txt").write_text("SECRET")
    return str(write_plan(tmp_path, ["Done."] * 3))


def shown() -> list[str]:
    """Return the texts of the files that entered the latest session."""
    (first, *_) = json.loads(call("session", "list", "--json").stdout)
    exported = json.loads(call("session", "export", first["session_id"]).stdout)
    stored = [entry["message"] for entry in exported["messages"]]
    return [message["content"] for message in stored if message["role"] == "developer"]


def test_mentions_in_what_is_piped_in_are_text(plan: str) -> None:
    done = run("run", "Summarise", "--plan", plan, input=ISSUE)

    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert shown() == []
    assert NOTICE in done.stderr


def test_mentions_that_person_types_are_followed_beside_them(plan: str) -> None:
    done = run(
        "run", "Summarise with @typed.md", "--plan", plan, input="See @~/diary.txt\n"
    )

    files = "".join(shown())
    assert done.returncode == 0
    assert "TYPED" in files
    assert "NOTED" in files
    assert "SECRET" not in files


def test_unfinished_code_block_piped_in_hides_nothing_typed(
    plan: str,
) -> None:
    run("run", "Explain @notes.md `so", "--plan", plan, input="that` it ends\n```\n")

    assert "NOTED" in "".join(shown())


@pytest.mark.parametrize("command", ["continue", "run"])
def test_piped_prompt_mentions_nothing_unless_asked(plan: str, command: str) -> None:
    call("run", "Begin.", "--plan", plan)
    without = call(command, "--plan", plan, input="Read @notes.md")
    before = shown()
    asked = call(command, "--plan", plan, "--mentions", input="Read @notes.md")

    assert before == []
    assert "NOTED" in "".join(shown())
    assert NOTICE in without.stderr
    assert NOTICE not in asked.stderr


def test_what_mentions_nothing_is_piped_in_without_a_word(plan: str) -> None:
    done = run(
        "run",
        "Summarise",
        "--plan",
        plan,
        input="Mail bob@example.org about `@x.md`.\n",
    )

    assert (done.returncode, done.stderr) == (0, "")
