"""Completion: the scripts of the shells, where they are put, and what they complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amplifier.cli import main

PLACES = {
    "bash": "share/bash-completion/completions/amplifier",
    "fish": "config/fish/completions/amplifier.fish",
    "zsh": "share/zsh/site-functions/_amplifier",
}


def call(*arguments: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == expect, result.output
    return result


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the shells look."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("shell", sorted(PLACES))
def test_the_script_of_a_shell_is_printed_or_put_where_it_looks(folders: Path, shell: str) -> None:
    script = call("completion", shell).stdout
    assert "_AMPLIFIER_COMPLETE=" in script
    installed = call("completion", shell, "--install")
    path = folders / PLACES[shell]
    assert installed.stdout == f"{path}\n"
    assert path.read_text().strip() == script.strip()


def test_the_shell_of_the_person_is_known(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    result = call("--install-completion")
    assert f"fpath=({(folders / PLACES['zsh']).parent} $fpath)" in result.stderr
    assert (folders / PLACES["zsh"]).is_file()


def test_without_such_folders_those_of_the_home_are_used(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    call("completion", "fish", "--install")
    assert (folders / "home/.config/fish/completions/amplifier.fish").is_file()


@pytest.mark.parametrize("shell", ["/bin/csh", ""])
def test_an_unknown_shell_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("SHELL", shell)
    assert "completion SHELL --install" in call("--install-completion", expect=2).stderr
    call("completion", "csh", expect=2)


@pytest.mark.parametrize(
    ("words", "found"),
    [("amplifier prov", "provider"), ("amplifier provider us", "use"), ("amplifier run --prof", "--profile")],
)
def test_commands_and_options_are_completed(words: str, found: str) -> None:
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_AMPLIFIER_COMPLETE": "bash_complete"}
    result = CliRunner().invoke(main, [], env=environment, prog_name="amplifier")
    assert f"plain,{found}" in result.stdout.splitlines()
