"""Sessions are kept and go on: by `continue`, `resume` and `run --resume`."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.installation import install_command
from tests.app.store.talks import interrupt, keep
from tests.cli.programs import call, write_plan


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, the working directory."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def stored() -> list[tuple[str, int, str]]:
    records = (found.record for found in ProjectSessions.of(AppDirs.find()).all())
    return [(record.session_id, record.turn_count, record.prompt) for record in records]


def test_a_session_is_kept_and_goes_on(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["one", "two"]))
    first = json.loads(call("run", "Hello", "--plan", plan, "--output", "json").stdout)
    assert stored() == [(first["session_id"], 1, "Hello")]
    assert call("continue", "And now?", "--plan", plan).stdout == "one\n"
    assert (
        call("resume", first["session_id"][:6], "More", "--plan", plan).stdout
        == "one\n"
    )
    again = json.loads(
        call(
            "run",
            "Last",
            "--resume",
            first["session_id"],
            "--plan",
            plan,
            "--output",
            "json",
        ).stdout
    )
    assert again["session_id"] == first["session_id"]
    assert stored() == [(first["session_id"], 4, "Hello")]


def test_a_session_is_not_kept_when_nobody_wants_it(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    call("run", "Hello", "--plan", plan, "--no-keep")
    call("config", "set", "sessions.keep", "false")
    call("run", "Hello", "--plan", plan)
    assert stored() == []
    call("run", "Hello", "--plan", plan, "--keep")
    assert len(stored()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("continue", "Hello", "--keep"),
        ("resume", "abc", "Hello", "--no-keep"),
        ("run", "Hi", "--resume", "a", "--keep"),
    ],
    ids=["continue", "resume", "run"],
)
def test_one_that_goes_on_is_kept_whatever_is_wanted(words: tuple[str, ...]) -> None:
    assert "are about a new session" in call(*words, expect=2).stderr


def test_there_must_be_a_session_to_go_on_with() -> None:
    assert (
        "there is none in this project yet"
        in call("continue", "Hello", expect=1).stderr
    )
    assert "no such session" in call("resume", "abc", "Hello", expect=1).stderr


def test_the_sessions_of_another_project_are_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    call("run", "Hello", "--plan", plan)
    (tmp_path / "other" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "other")
    assert stored() == []
    call("continue", "Hello", expect=1)


def test_a_session_goes_on_with_its_own_profile(tmp_path: Path) -> None:
    own = Path(AppDirs.find().home)
    for name in ("one", "two"):
        head = "session: {orchestrator: loop-basic, context: context-simple}\n"
        provider = f"providers: [{{module: provider-scripted, config: {{responses: [{name}], repeat: true}}}}]\n"
        (own / "profiles").mkdir(parents=True, exist_ok=True)
        (own / f"profiles/{name}.md").write_text(
            f"---\nprofile: {{name: {name}}}\n{head}{provider}---\n"
        )
    assert call("run", "Hello", "--profile", "one").stdout == "one\n"
    call("profile", "use", "two")
    assert call("continue", "Hello").stdout == "one\n"
    assert call("continue", "Hello", "--profile", "one").stdout == "one\n"
    refused = call("continue", "Hello", "--profile", "two", expect=1).stderr
    assert "--profile two: the session was made of the profile one" in refused
    assert "--with-current-plan" in refused
    assert (
        call("continue", "Hello", "--profile", "two", "--with-current-plan").stdout
        == "two\n"
    )
    assert call("continue", "Hello").stdout == "two\n"


def test_without_the_package_that_locks_sessions_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    monkeypatch.setattr("amplifier.app.sessions.selection.find_spec", lambda _: None)
    assert (
        f"to store sessions: {install_command('amplifier[cli]')}"
        in call("run", "Hello", "--plan", plan).stderr
    )
    assert (
        install_command("amplifier[cli]")
        in call("run", "Hello", "--plan", plan, "--keep", expect=1).stderr
    )
    assert (
        install_command("amplifier[cli]") in call("continue", "Hello", expect=1).stderr
    )


def test_what_a_project_brings_is_told_and_left_out(
    tmp_path: Path, project: Path
) -> None:
    (project / ".amplifier").mkdir()
    (project / ".amplifier/settings.yaml").write_text("profile: {active: theirs}\n")
    output = call("run", "Hello", "--plan", str(write_plan(tmp_path, ["one"]))).stderr
    assert "going on without the settings of this folder" in output
    assert "'amplifier trust'" in output


def test_an_interrupted_turn_is_told(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    call("run", "Hello", "--plan", plan)
    (found,) = ProjectSessions.of(AppDirs.find()).all()

    async def cut_off() -> None:
        store = ProjectSessions.of(AppDirs.find())
        await interrupt(store, found)
        await interrupt(
            store,
            await keep(
                store, "c1", parent_id=found.record.session_id, agent_name="scout"
            ),
        )

    anyio.run(cut_off)
    output = call("continue", "Go on", "--plan", plan).stderr
    assert "The last turn was interrupted: Delete it" in output
    assert "scout was at work, in session c1" in output
    assert output.count("may have had their effect, or not: rm") == 2
    assert output.count("were not started: ls") == 2
