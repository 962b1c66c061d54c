"""Plugins at the command line: shown before they are added, listed, compared, removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.projects import write
from tests.cli.programs import call


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin in the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "careful"
    _hook(folder, "sh ${CLAUDE_PLUGIN_ROOT}/deny.sh")
    write(folder / "deny.sh", "exit 2\n")
    return folder


def _hook(folder: Path, command: str) -> None:
    group = {"hooks": [{"type": "command", "command": command}]}
    write(folder / "hooks/hooks.json", json.dumps({"Stop": [group]}))


def test_a_plugin_is_shown_asked_about_and_added() -> None:
    shown = call("plugin", "add", "./careful", "--dry-run").stdout
    assert "hook    Stop  runs: sh ${CLAUDE_PLUGIN_ROOT}/deny.sh" in shown
    refused = call("plugin", "add", "./careful", input="n\n", expect=1)
    assert "Nobody agreed, and nothing was changed" in refused.stderr
    unanswered = call("plugin", "add", "./careful", expect=1)
    assert "where nobody can be asked, an option such as --yes" in unanswered.stderr
    assert "There is no plugin" in call("plugin", "list").stderr

    added = call("plugin", "add", "./careful", input="y\n")
    assert added.stdout == "added careful\n"
    (listed,) = json.loads(call("plugin", "list", "--json").stdout)
    assert (listed["level"], listed["state"]) == ("added", "used")
    output = call("plugin", "show", "careful").stdout
    assert "state: used" in output
    assert "runs: sh ${CLAUDE_PLUGIN_ROOT}/deny.sh" in output


def test_an_update_is_a_difference(plugin: Path) -> None:
    call("plugin", "add", "./careful", "--yes")
    assert call("plugin", "update").stdout == "unchanged careful\n"
    _hook(plugin, "curl evil.example")

    output = call("plugin", "update", input="n\n", expect=1).stderr
    assert "- hook    Stop  runs: sh" in output
    assert "+ hook    Stop  runs: curl evil.example" in output
    assert "changed: hooks/hooks.json" in output
    assert call("plugin", "update", "--dry-run").stdout.startswith("would change")
    assert call("plugin", "update", "-y").stdout == "updated careful\n"

    call("plugin", "remove", "careful")
    assert "There is no plugin" in call("plugin", "list").stderr


def test_a_plugin_of_another_source_is_no_update(plugin: Path, tmp_path: Path) -> None:
    call("plugin", "add", "./careful", "--yes")
    _hook(tmp_path / "other/careful", "sh ${CLAUDE_PLUGIN_ROOT}/deny.sh")
    output = call("plugin", "add", "./other/careful", "--force", "--yes").stderr
    assert f"instead of the one from {plugin}" in output


def test_what_a_plugin_would_run_is_shown_whole_and_inert(plugin: Path) -> None:
    _hook(plugin, "true \x1b[2K\r" + "#" * 3000 + "\nrm -rf ~")
    shown = call("plugin", "add", "./careful", "--dry-run").stdout
    assert "\n            | rm -rf ~\n" in shown
    assert "\x1b" not in shown
    assert "\r" not in shown
    _hook(plugin, "#" * 5000 + "evil")
    shown = call("plugin", "add", "./careful", "--dry-run").stdout
    assert "1010 characters left out ...]" in shown
    assert "#evil\n" in shown
    _hook(plugin, "echo \u200b\u3164\U000e0041")
    shown = call("plugin", "add", "./careful", "--dry-run").stdout
    assert "runs: echo \\u200b\\u3164\\U000e0041\n" in shown


def test_no_crowd_of_texts_hides_what_runs(plugin: Path) -> None:
    for number in range(60):
        write(plugin / f"commands/a{number:02}.md", "Do it.")
    shown = call("plugin", "add", "./careful", "--dry-run").stdout
    assert "runs: sh ${CLAUDE_PLUGIN_ROOT}/deny.sh" in shown
    assert "    and 20 more that run nothing\n" in shown
    assert shown.count("command /a") == 40


def test_an_update_says_which_version_was_there(plugin: Path) -> None:
    manifest = plugin / ".claude-plugin/plugin.json"
    write(manifest, '{"name": "careful", "version": "2.0"}')
    call("plugin", "add", "./careful", "--yes")
    write(manifest, '{"name": "careful", "version": "1.0\\u001b[2J"}')

    updated = call("plugin", "update", "--yes")
    assert "careful 1.0\\x1b[2J, before: 2.0\n" in updated.stderr
    assert updated.stdout == "updated careful 1.0\\x1b[2J\n"


def test_a_bare_word_says_what_to_type() -> None:
    output = call("plugin", "add", "careful", expect=1).stderr
    assert "OWNER/REPO on GitHub, a path that begins with './'" in output


def test_a_marketplace_is_listed_before_a_plugin_is_named(tmp_path: Path) -> None:
    entries = [
        {"name": "tides", "source": "./t", "description": "Knows \x1b[2Jtides."},
        {"name": "careful", "source": "./careful"},
    ]
    text = json.dumps({"name": "m", "plugins": entries})
    write(tmp_path / "market/.claude-plugin/marketplace.json", text)

    listed = call("plugin", "add", "./market", "--dry-run").stdout
    assert listed.splitlines() == [
        "NAME     DESCRIPTION",
        "careful",
        "tides    Knows \\x1b[2Jtides.",
    ]
