"""What a person trusted to guard a session, and is other now, stops it: it does not run without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.projects import write
from tests.cli.programs import call, write_plan

HOOKS = {
    "hooks": {
        "PreToolUse": [
            {"matcher": "*", "hooks": [{"type": "command", "command": "exit 2"}]}
        ]
    }
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    write(project / ".claude/settings.json", json.dumps(HOOKS))
    (project / ".git").mkdir()
    monkeypatch.chdir(project)
    return project


def change(project: Path) -> None:
    write(project / ".claude/settings.json", "{}")


def lose(project: Path) -> None:
    (project / ".claude/settings.json").unlink()


@pytest.mark.parametrize("how", [change, lose])
@pytest.mark.parametrize("start", ["run", "continue", "tool"])
def test_hooks_that_changed_since_they_were_trusted_stop_turn(
    project: Path, tmp_path: Path, start: str, how: Callable[[Path], None]
) -> None:
    plan = str(write_plan(tmp_path, ["Done."] * 5, "hooks-shell", "tool-todo"))
    words = {
        "run": ("run", "hi", "--plan", plan),
        "continue": ("continue", "hi"),
        "tool": ("tool", "invoke", "todo", "action=list", "--plan", plan),
    }[start]
    call("trust", "grant", "hooks")
    assert call("run", "hi", "--plan", plan).stdout == "Done.\n"
    how(project)

    text = " ".join(call(*words, expect=1).output.split())
    assert ".claude/settings.json" in text
    assert "amplifier trust" in text

    call("trust", "revoke", "hooks")
    if start == "run":
        assert call(*words).stdout == "Done.\n"


def test_hooks_that_nobody_trusted_stop_nothing(project: Path, tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["Done."], "hooks-shell"))

    assert call("run", "hi", "--plan", plan).stdout == "Done.\n"


def test_changed_trusted_settings_stop_their_session(
    project: Path, tmp_path: Path
) -> None:
    write(
        tmp_path / "home/settings.yaml",
        "config: {providers: [{module: provider-scripted, config: {responses: [a]}}]}\n",
    )
    write(project / ".amplifier/settings.yaml", "limits: {iterations: 2}\n")
    call("trust", "grant", "settings")
    assert call("run", "hi").stdout == "a\n"
    write(project / ".amplifier/settings.yaml", "limits: {iterations: 200}\n")

    output = call("run", "hi", expect=1).output
    assert ".amplifier/settings.yaml" in output
    assert "amplifier trust revoke settings" in " ".join(output.split())
