"""Settings, profiles, agents, trust and secrets at the command line."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path

import pytest

from tests.app.projects import write
from tests.cli.person import answer, person  # noqa: F401  # a fixture of the tests here
from tests.cli.programs import call

PROFILE = """\
---
profile: {name: base, version: "1", description: For everything., extends: root}
tools: [{module: tool-hammer, config: {timeout: 9, api_key: "${KEY}"}}]
---
You help. See @AGENTS.md
"""
ROOT = """\
---
profile: {name: root}
session: {orchestrator: loop-basic, context: context-simple}
tools: [{module: tool-hammer, config: {timeout: 5}}]
---
"""
AGENT = "---\nmeta: {name: reviewer, description: Reads changes.}\ntools: [tool-web]\n---\nYou review.\n"


# -- config


def test_a_setting_is_set_read_explained_and_taken_away(own: Path) -> None:
    assert call("config", "get", "ui.show_usage").stdout == "true\n"
    call("config", "set", "ui.show_usage", "false")
    assert call("config", "get", "ui.show_usage").stdout == "false\n"
    call("config", "set", "ui.show_usage", "true", "--scope", "project")
    assert answer("config", "explain", "ui.show_usage") == [
        {
            "scope": "project",
            "path": str(Path.cwd() / ".amplifier/settings.yaml"),
            "line": 2,
            "value": True,
        },
        {
            "scope": "user",
            "path": str(own / "settings.yaml"),
            "line": 2,
            "value": False,
        },
        {"scope": "default", "path": None, "line": None, "value": True},
    ]
    assert "SCOPE" in call("config", "explain", "ui.show_usage").stdout
    call("config", "unset", "ui.show_usage", "--scope", "project")
    assert call("config", "get", "ui.show_usage").stdout == "false\n"
    assert call("config", "list").stdout == "ui.show_usage = false\n"
    assert answer("config", "list") == {"ui": {"show_usage": False}}


@pytest.mark.parametrize(
    "arguments", [("get", "profile.active"), ("explain", "sources.x")]
)
def test_what_is_not_set_is_told(arguments: tuple[str, ...]) -> None:
    assert "is not set" in call("config", *arguments, expect=1).stderr


@pytest.mark.parametrize(
    "arguments", [("get", ""), ("get", "a..b"), ("set", "ui.show_usage", "[")]
)
def test_wrong_usage_is_told(arguments: tuple[str, ...]) -> None:
    call("config", *arguments, expect=2)


def test_an_unsound_value_is_refused_and_the_file_stays(own: Path) -> None:
    call("config", "set", "profile.active", "dev")
    before = (own / "settings.yaml").read_text()
    assert (
        "ui.show_usage"
        in call("config", "set", "ui.show_usage", "maybe", expect=1).stderr
    )
    assert (own / "settings.yaml").read_text() == before


def test_a_damaged_file_is_named_with_its_line(own: Path) -> None:
    write(own / "settings.yaml", "ui:\n  show_usag: true\n")
    output = call("config", "validate", expect=1).stderr
    assert "line 2" in output
    assert "settings.yaml" in output


def test_sound_files_are_listed(own: Path) -> None:
    write(own / "settings.yaml", "ui: {}\n")
    assert f"sound: {own / 'settings.yaml'}" in call("config", "validate").stderr


def test_the_files_are_named(own: Path) -> None:
    assert call("config", "path").stdout == f"{own / 'settings.yaml'}\n"
    assert call("config", "path", "--scope", "local").stdout.endswith(
        "shop/.amplifier/settings.local.yaml\n"
    )


def test_in_the_home_folder_there_is_no_project(
    monkeypatch: pytest.MonkeyPatch, own: Path
) -> None:
    monkeypatch.chdir(own.parent)
    call("config", "path", "--scope", "project", expect=1)
    assert (
        "no scope 'project' here"
        in call(
            "config", "set", "ui.show_usage", "1", "--scope", "project", expect=1
        ).stderr
    )


@pytest.mark.process
def test_a_file_is_edited(
    own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor = write(
        tmp_path / "editor", "#!/bin/sh\nprintf 'ui: {show_usage: false}\\n' > \"$1\"\n"
    )
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", shlex.quote(str(editor)))
    call("config", "edit", "--scope", "project")
    assert call("config", "get", "ui.show_usage").stdout == "false\n"
    editor.write_text("#!/bin/sh\nprintf 'ui: {show_usage: maybe}\\n' > \"$1\"\n")
    call("config", "edit", "--scope", "project", expect=1)
    assert (
        Path.cwd() / ".amplifier/settings.yaml"
    ).read_text() == "ui: {show_usage: false}\n"
    editor.write_text(
        "#!/bin/sh\nprintf 'ui: {}\\n' | tee .amplifier/settings.yaml > \"$1\"\n"
    )
    assert (
        "not trusted" in call("config", "edit", "--scope", "project", expect=1).stderr
    )
    call("trust", "--yes")
    editor.write_text("#!/bin/sh\nexit 0\n")
    assert "Nothing was changed" in call("config", "edit").stderr


# -- secrets


def test_what_stands_under_the_name_of_a_secret_is_not_shown(own: Path) -> None:
    write(
        own / "settings.yaml",
        'overrides: {tool-x: {config: {"api_key": ["${A} b"], "other": c}}}\n',
    )
    for key in ("api_key", "api_key[0]", '["api_key"]'):
        for command in ("get", "explain"):
            output = call(
                "config",
                command,
                f"overrides.tool-x.config{'' if key[0] == '[' else '.'}{key}",
            ).stdout
            assert "(withheld)" in output
            assert "${A}" not in output
    assert call("config", "get", "overrides.tool-x.config.other").stdout == "c\n"


def test_a_secret_is_kept_and_never_shown(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("config", "secret", "set", "ACME_KEY", input="s3cret\n")
    monkeypatch.setenv("OTHER", "0ther")
    call("config", "secret", "set", "OTHER_KEY", "--from-env", "OTHER")
    assert answer("config", "secret", "list") == [
        {"name": "ACME_KEY", "kept_in": "file"},
        {"name": "OTHER_KEY", "kept_in": "file"},
    ]
    assert "s3cret" not in call("config", "secret", "list").output
    assert stat.S_IMODE((own / "secrets.json").stat().st_mode) == 0o600
    call("config", "secret", "remove", "ACME_KEY")
    call("config", "secret", "remove", "ACME_KEY", expect=1)


@pytest.mark.parametrize("name", ["A B", "1"])
def test_what_is_no_name_of_a_secret_is_refused(name: str) -> None:
    call("config", "secret", "set", name, expect=2, input="x\n")


def test_an_empty_secret_is_refused() -> None:
    assert (
        "is empty"
        in call("config", "secret", "set", "KEY", expect=2, input="\n").stderr
    )


def test_nothing_kept_is_told() -> None:
    assert "Nothing is stored" in call("config", "secret", "list").stderr


# -- profiles


@pytest.fixture
def profiles(own: Path) -> None:
    """Two profiles, one of which builds on the other, and what its body mentions."""
    write(own / "profiles/base.md", PROFILE)
    write(own / "profiles/root.md", ROOT)
    write(
        own / "profiles/AGENTS.md",
        "---\nprofile: {description: No agent.}\n---\nBe brief.",
    )


@pytest.mark.usefixtures("profiles")
def test_profiles_are_listed_and_chosen(own: Path) -> None:
    assert "No profile is active" in call("profile", "current").stderr
    call("profile", "use", "base")
    assert call("profile", "current").stdout == "base\n"
    assert "*  base" in call("profile", "list").stdout
    listed = answer("profile", "list")
    assert isinstance(listed, list)
    assert next(found for found in listed if found["name"] == "base") == {
        "name": "base",
        "active": True,
        "level": "user",
        "path": str(own / "profiles/base.md"),
        "version": "1",
        "description": "For everything.",
        "extends": "root",
    }
    call("profile", "reset")
    assert "No profile is active" in call("profile", "current").stderr


@pytest.mark.usefixtures("profiles")
def test_a_profile_is_shown_with_every_origin() -> None:
    call("config", "set", "limits.iterations", "7")
    text = call("profile", "show", "base", "--detail").stdout
    assert "chain: root -> base" in text
    assert "Be brief." in text
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert lines["tools[tool-hammer].config.timeout"].endswith("base (in place of 5)")
    assert lines["session.context.module"].endswith("root")
    assert lines["session.limits.iterations"].endswith("settings")
    assert "(withheld)" in lines["tools[tool-hammer].config.api_key"]


@pytest.mark.usefixtures("profiles")
def test_a_profile_is_shown_as_data() -> None:
    shown = answer("profile", "show", "base")
    assert isinstance(shown, dict)
    assert [file["name"] for file in shown["chain"]] == ["root", "base"]
    assert shown["instruction"]["characters"] == len(shown["instruction"]["text"])
    assert shown["instruction"]["text"].endswith("You help. See @AGENTS.md")
    assert {
        "path": "tools[tool-hammer].config.timeout",
        "value": 9,
        "origin": "base",
        "replaced": 5,
    } in shown["values"]


@pytest.mark.usefixtures("profiles")
def test_mentions_of_a_profile_that_lead_nowhere_are_reported(own: Path) -> None:
    modules = "session: {orchestrator: loop-basic, context: context-simple}"
    text = "See @missing.md and @AGENTS.md, and ask @reviewer."
    write(own / "profiles/lost.md", f"---\n{modules}\n---\n{text}")
    for command in ("show", "validate"):
        assert (
            "warning: @missing.md: not found" in call("profile", command, "lost").stderr
        )
        assert "@reviewer" not in call("profile", command, "lost").stderr
        shown = answer("profile", command, "lost")
        assert isinstance(shown, dict)
        (outcome,) = shown["unresolved_mentions"]
        assert (outcome["mention"], outcome["status"]) == ("@missing.md", "missing")


@pytest.mark.usefixtures("profiles")
def test_a_profile_is_checked() -> None:
    output = call("profile", "validate", "base", expect=1).stdout
    assert "tools[0]: the module 'tool-hammer' is not installed" in output
    checked = json.loads(call("profile", "validate", "base", "--json", expect=1).stdout)
    assert not checked["passed"]
    assert call("profile", "validate", "bas", expect=1).stdout.startswith(
        "bas: no such profile"
    )


@pytest.mark.usefixtures("profiles")
def test_two_profiles_are_compared() -> None:
    assert {
        "path": "tools[tool-hammer].config.timeout",
        "left": 5,
        "right": 9,
    } in answer("profile", "diff", "root", "base")  # type: ignore[operator]
    assert (
        "tools[tool-hammer].config.timeout\n  - 5\n  + 9\n"
        in call("profile", "diff", "root", "base").stdout
    )
    assert "They do not differ" in call("profile", "diff", "base", "base").stderr


@pytest.mark.usefixtures("profiles")
def test_a_profile_of_a_path_is_used_wherever_a_session_begins(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own / "profiles")
    assert (
        f"The profile {own}/profiles/root.md is active"
        in call("profile", "use", "./root.md").stderr
    )
    monkeypatch.chdir("/")
    assert call("profile", "current").stdout == f"{own}/profiles/root.md\n"


@pytest.mark.usefixtures("profiles")
def test_where_another_scope_wins_over_a_profile_it_is_told() -> None:
    call("config", "set", "profile.active", "root", "--scope", "project")
    assert "another choice wins" in call("profile", "use", "base").stderr
    assert call("profile", "current").stdout == "root\n"


def test_a_profile_that_is_not_there_is_not_used() -> None:
    assert "no such profile" in call("profile", "use", "nowhere", expect=1).stderr


# -- agents


def test_agents_are_listed_and_shown(own: Path) -> None:
    write(own / "agents/reviewer.md", AGENT)
    assert "Reads changes." in call("agent", "list").stdout
    listed = answer("agent", "list")
    assert isinstance(listed, list)
    assert {
        "name": "reviewer",
        "level": "user",
        "path": str(own / "agents/reviewer.md"),
        "description": "Reads changes.",
    } in listed
    text = call("agent", "show", "reviewer").stdout
    assert text.endswith("You review.\n")
    assert "tool-web" in text
    shown = answer("agent", "show", "reviewer")
    assert isinstance(shown, dict)
    assert shown["plan"]["system"] == {"instruction": "You review."}
    assert (
        "did you mean 'reviewer'" in call("agent", "show", "reviewr", expect=1).stderr
    )


def test_invalid_files_are_named_in_lists_and_stop_nothing(own: Path) -> None:
    write(own / "agents/reviewer.md", AGENT)
    bad_agent = write(own / "agents/bad.md", "---\nx: 1\n---\n")
    bad_profile = write(own / "profiles/bad.md", "---\nprofile: {nme: x}\n---\n")

    agents = call("agent", "list")
    assert "reviewer" in agents.stdout
    assert str(bad_agent) in agents.stderr

    profiles = call("profile", "list")
    assert "foundation:dev" in profiles.stdout
    assert str(bad_profile) in profiles.stderr
    listed = answer("profile", "list")
    assert isinstance(listed, list)
    (bad,) = [
        entry for entry in listed if isinstance(entry, dict) and entry["name"] == "bad"
    ]
    assert "did you mean 'name'" in str(bad["problem"])

    shown = call("profile", "show")
    assert "VALUE" in shown.stdout


# -- trust


def test_what_project_brings_is_looked_at_trusted_and_forgotten() -> None:
    assert "brings nothing along" in call("trust").stderr
    assert "brings nothing along" in call("trust", "show").stderr
    write(Path.cwd() / ".amplifier/agents/x.md", AGENT)
    assert "agents: not trusted" in call("trust", "show").stdout
    assert "Trust the agents" in call("trust", input="n\n").output
    shown = answer("trust", "show")
    assert isinstance(shown, list)
    assert not shown[0]["trusted"]
    assert shown[0]["files"] == [
        {"name": ".amplifier/agents/x.md", "size": len(AGENT), "changed": False}
    ]
    call("trust", input="y\n")
    assert "agents: trusted" in call("trust", "show").stdout
    assert "agents" in call("trust", "list").stdout
    call("trust", "revoke")
    assert "Nothing is trusted" in call("trust", "list").stderr
    call("trust", "grant", "agents")
    write(Path.cwd() / ".amplifier/agents/x.md", AGENT + "more")
    assert "changed" in call("trust", "show").stdout
    call("trust", "--yes")
    assert "agents: trusted" in call("trust", "show").stdout


def test_scripts_that_hooks_run_looked_at_and_trusted_with_them() -> None:
    hook = {"type": "command", "command": "sh scripts/check.sh"}
    Path(".claude").mkdir()
    Path(".claude/settings.json").write_text(
        json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}})
    )
    Path("scripts").mkdir()
    Path("scripts/check.sh").write_text("exit 0\n")
    call("trust", "--yes")

    assert "  scripts/check.sh" in call("trust", "show").stdout
    Path("scripts/check.sh").write_text("exit 1\n")
    assert "hooks: not trusted" in call("trust", "show").stdout


def test_an_unknown_kind_is_named() -> None:
    assert "did you mean 'agents'" in call("trust", "grant", "agent", expect=1).stderr


def test_what_cannot_be_trusted_is_told(tmp_path: Path) -> None:
    (Path.cwd() / ".amplifier").mkdir()
    (Path.cwd() / ".amplifier/agents").symlink_to(tmp_path)
    assert "cannot be trusted" in call("trust").stderr
    call("trust", "grant", "agents", expect=1)
