"""Sessions are kept and go on: by `continue`, `resume` and `run --resume`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amplifier.app.places import Places
from amplifier.app.store.store import SessionStore
from amplifier.cli import main
from tests.cli.programs import write_plan


def call(*arguments: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == expect, result.output
    return result


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, the working directory."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def kept() -> list[tuple[str, int, str]]:
    records = (found.record for found in SessionStore.of(Places.find()).all())
    return [(record.session_id, record.turn_count, record.prompt) for record in records]


def test_a_session_is_kept_and_goes_on(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["one", "two"]))
    first = json.loads(call("run", "Hello", "--plan", plan, "--output", "json").stdout)
    assert kept() == [(first["session_id"], 1, "Hello")]
    assert call("continue", "And now?", "--plan", plan).stdout == "one\n"
    assert call("resume", first["session_id"][:6], "More", "--plan", plan).stdout == "one\n"
    again = json.loads(call("run", "Last", "--resume", first["session_id"], "--plan", plan, "--output", "json").stdout)
    assert again["session_id"] == first["session_id"]
    assert kept() == [(first["session_id"], 4, "Hello")]


def test_a_session_is_not_kept_when_nobody_wants_it(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    call("run", "Hello", "--plan", plan, "--no-keep")
    call("config", "set", "sessions.keep", "false")
    call("run", "Hello", "--plan", plan)
    assert kept() == []
    call("run", "Hello", "--plan", plan, "--keep")
    assert len(kept()) == 1


def test_there_must_be_a_session_to_go_on_with() -> None:
    assert "there is none in this project yet" in call("continue", "Hello", expect=1).stderr
    assert "no such session" in call("resume", "abc", "Hello", expect=1).stderr


def test_the_sessions_of_another_project_are_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    call("run", "Hello", "--plan", plan)
    (tmp_path / "other" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "other")
    assert kept() == []
    call("continue", "Hello", expect=1)


def test_a_session_goes_on_with_its_own_profile(tmp_path: Path) -> None:
    own = Path(Places.find().home)
    for name in ("one", "two"):
        head = "session: {orchestrator: loop-basic, context: context-simple}\n"
        provider = f"providers: [{{module: provider-scripted, config: {{responses: [{name}], repeat: true}}}}]\n"
        (own / "profiles").mkdir(parents=True, exist_ok=True)
        (own / f"profiles/{name}.md").write_text(f"---\nprofile: {{name: {name}}}\n{head}{provider}---\n")
    assert call("run", "Hello", "--profile", "one").stdout == "one\n"
    call("profile", "use", "two")
    assert call("continue", "Hello").stdout == "one\n"
    assert call("continue", "Hello", "--profile", "two").stdout == "two\n"


def test_without_the_package_that_locks_sessions_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    monkeypatch.setattr("amplifier.cli._opening.find_spec", lambda _: None)
    assert "to keep sessions: pip install 'amplifier[cli]'" in call("run", "Hello", "--plan", plan).stderr
    assert "pip install 'amplifier[cli]'" in call("run", "Hello", "--plan", plan, "--keep", expect=1).stderr
    assert "pip install 'amplifier[cli]'" in call("continue", "Hello", expect=1).stderr


def test_what_a_project_brings_is_told_and_left_out(tmp_path: Path, project: Path) -> None:
    (project / ".amplifier").mkdir()
    (project / ".amplifier/settings.yaml").write_text("profile: {active: theirs}\n")
    told = call("run", "Hello", "--plan", str(write_plan(tmp_path, ["one"]))).stderr
    assert "going on without the settings of this folder" in told
    assert "'amplifier trust'" in told


def test_an_interrupted_turn_is_told(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["one"]))
    call("run", "Hello", "--plan", plan)
    (found,) = SessionStore.of(Places.find()).all()
    import anyio

    from amplifier_sdk.journal import CallStarted, MessageWritten, TurnStarted

    async def interrupt() -> None:
        async with SessionStore.of(Places.find()).open(found.record) as session:
            await session.journal.append(TurnStarted(turn_id="t2", prompt="Delete it"))
            block = {"type": "tool_call", "id": "c1", "name": "rm", "input": {}}
            message = {"role": "assistant", "content": [block]}
            await session.journal.append(MessageWritten(turn_id="t2", message=message))  # type: ignore[arg-type]  # JSON data
            await session.journal.append(CallStarted(turn_id="t2", call_id="c1", tool_name="rm"))

    anyio.run(interrupt)
    told = call("continue", "Go on", "--plan", plan).stderr
    assert "The last turn was interrupted: Delete it" in told
    assert "may have had their effect, or not: rm" in told
