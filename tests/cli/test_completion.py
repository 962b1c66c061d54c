"""Completion: the scripts of the shells, where they are put, and what they complete."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from amplifier.app.directories import AppDirs
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.cli import main
from tests.app.projects import write
from tests.cli.programs import call, write_plan

PLACES = {
    "bash": "share/bash-completion/completions/amplifier",
    "fish": "config/fish/completions/amplifier.fish",
    "zsh": "share/zsh/site-functions/_amplifier",
}


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the shells look."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.process
@pytest.mark.parametrize("shell", sorted(PLACES))
def test_the_script_of_a_shell_is_printed_or_put_where_it_looks(
    folders: Path, shell: str
) -> None:
    script = call("completion", shell).stdout
    assert "_AMPLIFIER_COMPLETE=" in script
    installed = call("completion", shell, "--install")
    path = folders / PLACES[shell]
    assert installed.stdout == f"{path}\n"
    assert path.read_text().strip() == script.strip()


def test_the_shell_of_the_person_is_known(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    result = call("--install-completion")
    assert f"fpath=({(folders / PLACES['zsh']).parent} $fpath)" in result.stderr
    assert (folders / PLACES["zsh"]).is_file()


def test_without_such_folders_those_of_the_home_are_used(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    call("completion", "fish", "--install")
    assert (folders / "home/.config/fish/completions/amplifier.fish").is_file()


@pytest.mark.parametrize("shell", ["/bin/csh", ""])
def test_an_unknown_shell_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("SHELL", shell)
    assert "completion SHELL --install" in call("--install-completion", expect=2).stderr
    call("completion", "csh", expect=2)


def completed(words: str) -> list[str]:
    """Return what bash offers for the last of the words."""
    environment = {
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "_AMPLIFIER_COMPLETE": "bash_complete",
    }
    result = CliRunner().invoke(main, [], env=environment, prog_name="amplifier")
    return [line.removeprefix("plain,") for line in result.stdout.split()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("amplifier prov", "provider"),
        ("amplifier provider us", "use"),
        ("amplifier run --prof", "--profile"),
    ],
)
def test_commands_and_options_are_completed(words: str, found: str) -> None:
    assert found in completed(words)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppDirs:
    """A project with profiles, collections and sessions, the working directory."""
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    dirs = AppDirs.find()
    for path in (
        dirs.home / "profiles/dev.md",
        dirs.home / "profiles/two words.md",
        dirs.home / "profiles/README.md",
        dirs.home / "collections/kit/profiles/strict.md",
        dirs.home / "collections/deep/deep/profiles/inner.md",
        dirs.home / "collections/.incoming/profiles/not-yet.md",
        dirs.root / ".amplifier/profiles/shop.md",
        dirs.root / ".amplifier/collections/team/profiles/ours.md",
    ):
        write(path, "---\n---\n")
    return dirs


def test_sessions_are_completed_by_id_and_name(shop: AppDirs, tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    first = json.loads(call("run", "Hello", "--plan", plan, "--output", "json").stdout)[
        "session_id"
    ]
    call("session", "rename", first, "till")
    other = call("session", "fork", first, "--name", "back yard").stdout.strip()
    write(shop.state / "sessions/torn/metadata.json", "{")
    assert completed("amplifier resume ") == sorted([first, other, "till"])
    assert completed(f"amplifier session rename {other[:8]}") == [other]
    for words in (
        "run --resume",
        "logs --session",
        "trace",
        "session remove x",
        "session export",
        "session repair",
    ):
        assert completed(f"amplifier {words} ti") == ["till"], words


def test_profiles_and_collections_are_completed(shop: AppDirs) -> None:
    names = ["deep:inner", "dev", "foundation:base", "kit:strict", "shop", "team:ours"]
    offered = completed("amplifier run --profile ")
    assert [name for name in names if name in offered] == names
    assert [
        name
        for name in offered
        if "README" in name or "words" in name or "not-yet" in name
    ] == []
    for words in (
        "chat -P",
        "tool list -P",
        "init --profile",
        "profile show",
        "profile diff dev",
        "profile use",
    ):
        assert completed(f"amplifier {words} de") == ["deep:inner", "dev"], words
    assert completed("amplifier collection verify ") == ["deep", "kit", "team"]
    assert completed("amplifier collection remove k") == ["kit"]
    # what is offered can be asked for
    for profile in ("dev", "kit:strict", "deep:inner"):
        ProfileLibrary.of(shop).find(profile)


def test_modules_and_providers_are_completed() -> None:
    assert "tool-trials" in completed("amplifier module why tool-")
    for words in (
        "run --provider",
        "init --provider",
        "provider use",
        "provider test",
        "provider models",
    ):
        assert completed(f"amplifier {words} for") == ["forever"], words
        assert completed(f"amplifier {words} provider-for") == ["provider-forever"], (
            words
        )


def test_a_name_that_a_terminal_would_obey_is_not_offered(shop: AppDirs) -> None:
    write(shop.home / "profiles/dev\x1b[31m.md", "")
    assert completed("amplifier run -P dev") == ["dev"]


def test_where_nothing_can_be_read_nothing_is_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(_: object = None) -> AppDirs:
        raise FileNotFoundError

    monkeypatch.setattr(AppDirs, "find", gone)
    assert completed("amplifier resume ") == []


@pytest.mark.process
def test_completing_a_name_loads_no_runtime(shop: AppDirs) -> None:
    program = (
        "import sys\nfrom amplifier.cli import main\n"
        "try:\n    main([], prog_name='amplifier')\nexcept SystemExit:\n    pass\n"
        "heavy = {'anyio', 'asyncio', 'yaml', 'structlog', 'cattrs', 'pluggy', 'rich', 'prompt_toolkit', 'trio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    for words in ("amplifier resume ", "amplifier run -P ", "amplifier run -p "):
        line = {
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "_AMPLIFIER_COMPLETE": "bash_complete",
        }
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **line},
        )
        assert done.stderr == "[]\n", words
