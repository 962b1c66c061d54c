"""`--allow-tool`, `--deny-tool`, `--system` and `--effort`, however a session begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import call, write_plan

WRITE: JSONObject = {
    "tool_calls": [
        {"name": "write_file", "arguments": {"file_path": "a.txt", "content": "x"}}
    ]
}
BEGINNINGS = {
    "run": ("run", "Go"),
    "run --continue": ("run", "--continue", "Go"),
    "run --resume": ("run", "--resume", "trip", "Go"),
    "continue": ("continue", "Go"),
    "resume": ("resume", "trip", "Go"),
}
each_beginning = pytest.mark.parametrize(
    "begin", BEGINNINGS.values(), ids=list(BEGINNINGS)
)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan that asks before it changes, whose model writes a file in each turn."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    script: list[JSONValue] = [WRITE, "done"] * 5
    return write_plan(tmp_path, script, "tool-filesystem", "hooks-approval")


def _begun(plan: Path, begin: tuple[str, ...]) -> tuple[str, ...]:
    """Begin the session that a command resumes, and return what a new one is made of."""
    if begin == BEGINNINGS["run"]:
        return ("--plan", str(plan))
    call("run", "First", "--plan", str(plan))
    (only,) = json.loads(call("session", "list", "--json").stdout)
    call("session", "rename", only["session_id"], "trip")
    return ()


@each_beginning
def test_an_allowed_tool_runs_unasked(plan: Path, begin: tuple[str, ...]) -> None:
    made_of = _begun(plan, begin)
    assert not Path("a.txt").exists()

    call(*begin, *made_of, "--allow-tool", "write_*")

    assert Path("a.txt").read_text() == "x"


def test_an_allowed_tool_is_allowed_once(plan: Path) -> None:
    call("run", "First", "--plan", str(plan), "--allow-tool", "write_file")
    Path("a.txt").unlink()

    again = call("continue", "Again")

    assert not Path("a.txt").exists()
    assert "have changed since" not in again.stderr


@each_beginning
def test_a_denied_tool_does_not_run(plan: Path, begin: tuple[str, ...]) -> None:
    made_of = _begun(plan, begin)

    output = call(*begin, *made_of, "--deny-tool", "write_file", "--yes").stderr

    assert not Path("a.txt").exists()
    assert "--deny-tool write_file" in output


def test_a_denied_tool_stays_denied(plan: Path) -> None:
    call("run", "First", "--plan", str(plan), "--deny-tool", "write_file")

    call("continue", "Again", "--yes", "--allow-tool", "write_file")

    assert not Path("a.txt").exists()


@pytest.mark.parametrize("option", ["--allow-tool", "--deny-tool"])
def test_a_name_that_no_tool_has_is_refused(plan: Path, option: str) -> None:
    output = call("run", "x", "--plan", str(plan), option, "write_fil", expect=1).stderr

    assert "tool 'write_fil': no such tool is mounted" in output
    assert "'write_file'" in output


def test_a_system_file_must_be_readable(plan: Path) -> None:
    done = call("run", "x", "--plan", str(plan), "--system", "@none.md", expect=1)

    assert "none.md" in done.stderr
    assert "Errno" not in done.stderr


@pytest.mark.parametrize(
    "option", [("--system", "x"), ("--effort", "low"), ("--deny-tool", "x")]
)
def test_an_agent_of_python_takes_none_of_them(option: tuple[str, ...]) -> None:
    output = call("run", "x", "--agent", "m:a", *option, expect=2).stderr

    assert "--agent says all of the session" in output


def test_an_effort_is_asked_of_the_model_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = write_plan(tmp_path, ["One."])
    call("run", "First", "--plan", str(plan), "--effort", "high")
    (folder,) = [each["folder"] for each in json.loads(call("session", "list", "--json").stdout)]  # fmt: skip

    recorded = json.loads(Path(folder, "composition.json").read_text("utf-8"))

    assert '"reasoning_effort": "high"' in json.dumps(recorded["plan"])
