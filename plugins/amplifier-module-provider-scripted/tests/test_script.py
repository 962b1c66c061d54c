"""Scripts in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier_module_provider_scripted import ScriptedResponse, read_script
from amplifier_sdk import ConfigError

SCRIPT = (ScriptedResponse(text="One"), ScriptedResponse(text="Two", delay=0.5))


def test_a_json_file_holds_a_list(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(["One", {"text": "Two", "delay": 0.5}]), "utf-8")

    assert read_script(str(path), subject="script") == SCRIPT


def test_a_json_lines_file_holds_an_answer_a_line(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('"One"\n\n{"text": "Two", "delay": 0.5}\n', "utf-8")

    assert read_script(str(path), subject="script") == SCRIPT


def test_a_tilde_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "script.json").write_text("[]", "utf-8")

    assert read_script("~/script.json", subject="script") == ()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("script.json", "[", "cannot read '.*script.json'"),
        ("script.jsonl", "One\n", "cannot read '.*script.jsonl'"),
        ("script.json", '"script.json"', "responses: a list of answers; got str"),
        ("script.json", '{"text": "One"}', "responses: a list of answers; got dict"),
    ],
)
def test_a_file_without_a_script_is_an_error(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")

    with pytest.raises(ConfigError, match=problem):
        read_script(str(tmp_path / name), subject="script")
