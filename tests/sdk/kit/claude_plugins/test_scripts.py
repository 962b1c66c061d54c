"""The files of a project that hooks run are known before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.claude_plugins import scripts_of


def settings(command: JSONValue) -> dict[str, bytes]:
    hooks: JSONValue = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}
    return {".claude/settings.json": json.dumps(hooks).encode()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two scripts."""
    for name in ("run.sh", "tools/check.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("sh tools/check.sh", ["tools/check.sh"]),
        ("./run.sh && sh ./tools/../tools/check.sh", ["run.sh", "tools/check.sh"]),
        ('"$CLAUDE_PROJECT_DIR"/run.sh', ["run.sh"]),
        ("${CLAUDE_PROJECT_DIR}/run.sh", ["run.sh"]),
        ("bash -c 'source run.sh'", ["run.sh"]),
        ("python3 --config=tools/check.sh", ["tools/check.sh"]),
        ("tools missing.sh ../outside.sh /etc/hostname", []),
        (7, []),
    ],
)
def test_files_that_commands_name_are_found(project: Path, command: JSONValue, found: list[str]) -> None:
    (project.parent / "outside.sh").touch()

    assert scripts_of(settings(command), str(project)) == found


def test_they_are_found_however_deep_the_commands_stand(project: Path) -> None:
    deep = b'{"x":' * 900 + b'{"command": "sh run.sh"}' + b"}" * 900

    assert scripts_of({"hooks/hooks.json": deep}, str(project)) == ["run.sh"]


def test_what_is_looked_at_already_is_left_out(project: Path) -> None:
    assert scripts_of({**settings("sh run.sh tools/check.sh"), "run.sh": b""}, str(project)) == ["tools/check.sh"]


def test_what_holds_no_hooks_names_nothing(project: Path) -> None:
    contents = {"a.json": b"{", "b.json": b"[" * 100_000, "c.json": b'["run.sh"]', "run.md": b"sh run.sh"}

    assert scripts_of(contents, str(project)) == []
