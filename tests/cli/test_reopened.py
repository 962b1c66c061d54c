"""A stored session is opened again with what it was made of, in whichever way it is opened."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store.children import StoredChildren
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.delegation import ChildRecord
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.app.projects import trust, write
from tests.cli.programs import call, read_until, run, start

DELETE: Final[JSONValue] = {
    "tool_calls": [{"name": "delete", "arguments": {"path": "a.txt"}}]
}
FIRST: Final[JSONValue] = ["one"]
THEN: Final[JSONValue] = [DELETE, "done"]

WAYS: Final = pytest.mark.parametrize(
    "way", ["continue", "resume", "run --resume", "fork"]
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, the working directory."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def latest() -> SessionRecord:
    return ProjectSessions.of(AppDirs.find()).all()[0].record


def folder() -> Path:
    return ProjectSessions.of(AppDirs.find()).folder(latest().session_id)


def answers(responses: JSONValue, name: str = "scripted") -> JSONObject:
    return {
        "module": "provider-scripted",
        "config": {"responses": responses, "name": name},
    }


def plan_of(
    responses: JSONValue,
    *,
    hooks: Sequence[JSONValue] = (),
    tools: Sequence[JSONValue] = (),
) -> JSONObject:
    return {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [answers(responses)],
        "tools": [*tools],
        "hooks": [*hooks],
    }


def script(path: Path, responses: JSONValue) -> str:
    """Write what the provider answers, apart from the plan: it changes from turn to turn, and the plan does not."""
    path.write_text(json.dumps(responses), "utf-8")
    return str(path)


def profile(own: Path, name: str, plan: JSONObject) -> None:
    write(
        own / f"profiles/{name}.md",
        f"---\n{json.dumps({'profile': {'name': name}, **plan})}\n---\n",
    )


def again(way: str, *more: str, expect: int = 0) -> str:
    """Open the latest session again, and return what is printed besides the answer."""
    session = latest().session_id
    if way == "fork":
        session = call("session", "fork", session).stdout.strip()
        way = "resume"
    words = {"continue": ["continue", "Go on"], "resume": ["resume", session, "Go on"]}
    return call(
        *words.get(way, ["run", "Go on", "--resume", session]), *more, expect=expect
    ).stderr


@WAYS
def test_the_hooks_of_a_plan_file_guard_every_later_turn(
    way: str, tmp_path: Path, project: Path
) -> None:
    """A file is not deleted without a question because the session is opened in another way."""
    stored = write(project / "a.txt", "kept")
    said = script(tmp_path / "said.json", FIRST)
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(plan_of(said, hooks=["hooks-approval"], tools=["tool-filesystem"])),
        "utf-8",
    )
    call("run", "Hello", "--plan", str(plan))
    plan.unlink()
    script(tmp_path / "said.json", THEN)

    again(way)

    assert stored.exists()
    recorded = json.loads((folder() / "composition.json").read_text())
    assert [
        hook["module"] if isinstance(hook, dict) else hook
        for hook in recorded["plan"]["hooks"]
    ] == ["hooks-approval"]
    assert stat.S_IMODE((folder() / "composition.json").stat().st_mode) == 0o600


@WAYS
def test_the_plan_of_now_is_taken_when_the_person_says_so(
    way: str, tmp_path: Path, project: Path
) -> None:
    stored = write(project / "a.txt", "kept")
    said = script(tmp_path / "said.json", FIRST)
    guarded, bare = tmp_path / "guarded.json", tmp_path / "bare.json"
    guarded.write_text(
        json.dumps(plan_of(said, hooks=["hooks-approval"], tools=["tool-filesystem"])),
        "utf-8",
    )
    bare.write_text(json.dumps(plan_of(said, tools=["tool-filesystem"])), "utf-8")
    call("run", "Hello", "--plan", str(guarded))
    script(tmp_path / "said.json", THEN)

    refused = again(way, "--plan", str(bare), expect=1)
    assert "--plan" in refused
    assert "--with-current-plan" in refused
    assert stored.exists()

    again(way, "--plan", str(bare), "--with-current-plan")
    assert not stored.exists()


def test_only_stored_session_has_another_plan_than_one_of_now() -> None:
    assert (
        "is about a stored session"
        in call("run", "Hello", "--with-current-plan", expect=2).stderr
    )


def test_what_restricts_now_is_added_and_what_allows_is_not(
    tmp_path: Path, project: Path
) -> None:
    own = Path(AppDirs.find().home)
    stored = write(project / "a.txt", "kept")
    said = script(tmp_path / "said.json", FIRST)
    profile(own, "work", plan_of(said, tools=["tool-filesystem", "tool-trials"]))
    call("run", "Hello", "--profile", "work")

    stricter = plan_of(
        said, tools=["tool-filesystem", "tool-todo"], hooks=["hooks-approval"]
    )
    profile(own, "work", stricter)
    script(tmp_path / "said.json", THEN)
    done = again("continue")

    assert stored.exists()
    assert "taken away meanwhile: tool-trials" in done
    assert "--with-current-plan takes what there is now" in done
    recorded = json.loads((folder() / "composition.json").read_text())["plan"]
    assert [tool["module"] for tool in recorded["tools"]] == ["tool-filesystem"]


def test_deny_rules_and_lower_limits_of_now_hold(tmp_path: Path, project: Path) -> None:
    own = Path(AppDirs.find().home)
    stored = write(project / "a.txt", "kept")
    said = script(tmp_path / "said.json", FIRST)
    allowed: JSONValue = {"module": "hooks-approval", "config": {"otherwise": "allow"}}
    profile(own, "work", plan_of(said, tools=["tool-filesystem"], hooks=[allowed]))
    call("run", "Hello", "--profile", "work")

    rules: JSONValue = [{"decision": "deny", "tools": ["delete"]}]
    call(
        "config", "set", "overrides.hooks-approval.config", json.dumps({"rules": rules})
    )
    call("config", "set", "limits.iterations", "3")
    script(tmp_path / "said.json", THEN)
    again("continue")

    assert stored.exists()
    recorded = json.loads((folder() / "composition.json").read_text())["plan"]
    assert recorded["hooks"][0]["config"] == {"otherwise": "allow", "rules": rules}
    assert recorded["session"]["limits"] == {"iterations": 3}


@WAYS
def test_the_provider_is_kept_until_another_one_is_named(way: str) -> None:
    own = Path(AppDirs.find().home)
    profile(own, "first", plan_of(["one"]))
    call("run", "Hello", "--profile", "first")
    call("run", "Hello", "--profile", "first", "--provider", "scripted")
    assert latest().provider == "provider-scripted"

    assert again(way) == ""

    assert latest().provider == "provider-scripted"


def test_another_provider_is_recorded_and_told(tmp_path: Path) -> None:
    own = Path(AppDirs.find().home)
    both: JSONObject = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            {**answers(["one"], "one"), "instance_id": "one"},
            {**answers(["two"], "two"), "instance_id": "two"},
        ],
    }
    profile(own, "both", both)
    assert call("run", "Hello", "--profile", "both", "-p", "one").stdout == "one\n"
    assert call("continue", "Go on").stdout == "one\n"
    other = call("continue", "Go on", "-p", "two")
    assert other.stdout == "two\n"
    assert "The provider was one, and is two from now on" in other.stderr
    assert call("continue", "Go on").stdout == "two\n"
    fork = call("session", "fork", latest().session_id).stdout.strip()
    assert call("resume", fork, "Go on").stdout == "two\n"


def test_the_first_tool_is_said_for_one_time(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    speak: JSONValue = {"tool_calls": [{"name": "speak", "arguments": {}}]}
    plan.write_text(
        json.dumps(plan_of([speak, "done"], tools=["tool-trials"])), "utf-8"
    )
    call("run", "Hello", "--plan", str(plan), "--tool", "speak")

    assert "first_tool" not in json.dumps(
        json.loads((folder() / "composition.json").read_text())["plan"]
    )


def test_secrets_are_not_stored_and_come_back(tmp_path: Path) -> None:
    own = Path(AppDirs.find().home)
    token, password = "sk-proj-" + "a1B2c3D4" * 6, "hunter2hunter2"
    guard: JSONValue = {
        "module": "hooks-shell",
        "config": {"env": {"SOME_TOKEN": token}},
    }
    other: JSONValue = {
        "module": "tool-web",
        "config": {"search_url": f"https://me:{password}@example.com/"},
    }
    profile(own, "work", plan_of(["one"], hooks=[guard], tools=[other]))
    call("run", "Hello", "--profile", "work")
    for file in own.glob("projects/**/*"):
        if file.is_file():
            content = file.read_bytes()
            assert token.encode() not in content, file
            assert password.encode() not in content, file
    assert call("continue", "Go on").stdout == "one\n"

    profile(own, "work", plan_of(["one"], tools=[other]))
    refused = call("continue", "Go on", expect=1).stderr
    assert "hooks[0].config.env.SOME_TOKEN: this secret is not stored" in refused
    assert "--with-current-plan" in refused
    assert call("continue", "Go on", "--with-current-plan").stdout == "one\n"


def test_secrets_of_plan_file_come_back_from_file_as_it_was(
    tmp_path: Path,
) -> None:
    token = "sk-proj-" + "a1B2c3D4" * 6
    plan = tmp_path / "plan.json"
    guard: JSONValue = {
        "module": "hooks-shell",
        "config": {"env": {"SOME_TOKEN": token}},
    }
    plan.write_text(json.dumps(plan_of(["one"], hooks=[guard])), "utf-8")
    call("run", "Hello", "--plan", str(plan))
    assert call("continue", "Go on").stdout == "one\n"
    plan.write_text(plan.read_text() + "\n", "utf-8")
    assert (
        "SOME_TOKEN: this secret is not stored"
        in call("continue", "Go on", expect=1).stderr
    )


def test_a_reference_to_the_environment_is_filled_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(AppDirs.find().home)
    monkeypatch.setenv("SOME_TOKEN", "abcdefgh-1")
    guard: JSONValue = {
        "module": "hooks-shell",
        "config": {"env": {"SOME_TOKEN": "${SOME_TOKEN}"}},
    }
    profile(own, "work", plan_of(["one"], hooks=[guard]))
    call("run", "Hello", "--profile", "work")
    recorded = json.loads((folder() / "composition.json").read_text())["plan"]
    assert recorded["hooks"][0]["config"] == {"env": {"SOME_TOKEN": "${SOME_TOKEN}"}}
    assert call("continue", "Go on").stdout == "one\n"
    monkeypatch.delenv("SOME_TOKEN")
    assert (
        "the variable SOME_TOKEN is not set"
        in call("continue", "Go on", expect=1).stderr
    )


@pytest.mark.process
def test_a_module_that_is_gone_or_another_refuses_the_session(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(plan_of(["one"], hooks=["hooks-tells"])), "utf-8")
    call("run", "Hello", "--plan", str(plan))
    metadata = tmp_path / "site/cli_trials-1.0.dist-info"
    newer = metadata.with_name("cli_trials-2.0.dist-info")
    metadata.rename(newer)
    (newer / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cli-trials\nVersion: 2.0\n", "utf-8"
    )
    assert (
        "hooks-tells: it was version 1.0 of cli-trials, and is 2.0 now"
        in run("continue", "Go on").stderr
    )
    shutil.rmtree(newer)
    refused = run("continue", "Go on")
    assert refused.returncode == 1
    assert (
        "hooks-tells: it came from cli-trials 1.0, and is not there any more"
        in refused.stderr
    )
    assert "--with-current-plan" in refused.stderr


def test_a_source_that_moved_refuses_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(plan_of(["one"], hooks=["hooks-tells"])), "utf-8")
    call("run", "Hello", "--plan", str(plan))
    monkeypatch.setenv("AMPLIFIER_MODULE_HOOKS_TELLS", str(tmp_path))
    refused = again("continue", expect=1)
    assert "hooks-tells: it came from cli-trials 1.0, and comes from" in refused


def test_what_the_project_brought_needs_its_trust_again(project: Path) -> None:
    settings = write(
        project / ".amplifier/settings.yaml", json.dumps({"limits": {"iterations": 7}})
    )
    trust(AppDirs.find(), "settings")
    profile(Path(AppDirs.find().home), "work", plan_of(["one"]))
    call("run", "Hello", "--profile", "work")
    assert call("continue", "Go on").stdout == "one\n"

    settings.write_text(json.dumps({"limits": {"iterations": 70}}))
    refused = again("continue", expect=1)
    assert (
        "settings: the session was made with the settings of this folder, which are not trusted now"
        in refused
    )
    trust(AppDirs.find(), "settings")
    assert call("continue", "Go on").stdout == "one\n"
    recorded = json.loads((folder() / "composition.json").read_text())["plan"]
    assert recorded["session"]["limits"] == {"iterations": 7}
    settings.unlink()
    assert "the files are not there any more" in again("continue", expect=1)


def test_a_session_of_an_earlier_version_is_opened_and_says_so(tmp_path: Path) -> None:
    profile(Path(AppDirs.find().home), "work", plan_of(["one"]))
    call("run", "Hello", "--profile", "work")
    (folder() / "composition.json").unlink()
    assert "composition.json: the file is missing" in again("continue", expect=1)
    record = json.loads((folder() / "metadata.json").read_text())
    del record["has_composition"], record["checksum"]
    (folder() / "metadata.json").write_text(json.dumps(record), "utf-8")

    assert "It is not recorded what this session was made of" in again("continue")
    assert again("continue") == ""


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"{", "it is no JSON"),
        (b"[]", "a mapping; got a list"),
        (b'{"version": 9, "plan": {}}', "1 is understood; got 9"),
        (b'{"version": 1, "plan": {}, "plans": 1}', "did you mean 'plan'?"),
        (b"[" + b" " * 4_000_001 + b"]", "it is larger than"),
    ],
    ids=["text", "list", "newer", "unknown", "large"],
)
def test_a_damaged_composition_refuses_the_session(
    content: bytes, reported: str
) -> None:
    profile(Path(AppDirs.find().home), "work", plan_of(["one"]))
    call("run", "Hello", "--profile", "work")
    (folder() / "composition.json").write_bytes(content)
    refused = again("continue", expect=1)
    assert reported in refused
    assert "--with-current-plan" in refused
    assert "done" not in again("continue", "--with-current-plan")


def test_a_composition_that_is_a_hard_link_refuses_the_session(tmp_path: Path) -> None:
    profile(Path(AppDirs.find().home), "work", plan_of(["one"]))
    call("run", "Hello", "--profile", "work")
    (tmp_path / "other.json").hardlink_to(folder() / "composition.json")
    assert "it is a hard link" in again("continue", expect=1)


def test_repaired_record_refuses_limits_whose_spending_is_lost() -> None:
    plan = plan_of(["one"])
    plan["session"] = {
        "orchestrator": "loop-basic",
        "context": "context-simple",
        "limits": {"session_tokens": 10**6},
    }
    profile(Path(AppDirs.find().home), "work", plan)
    call("run", "Hello", "--profile", "work")
    session, damaged = latest().session_id, folder() / "metadata.json"
    damaged.write_bytes(damaged.read_bytes()[:40])
    call("session", "repair", session)

    refused = call("resume", session, "Go on", expect=1).output
    assert (
        "session.limits.session_tokens: what the session has spent is not known"
        in " ".join(refused.split())
    )
    call("resume", session, "Go on", "--with-current-plan", "--profile", "work")


@pytest.mark.parametrize("of", ["root", "child"])
def test_repaired_record_does_not_take_present_plan_unasked(
    project: Path, of: str
) -> None:
    session = child(project, ["one"])
    if of == "root":
        session = latest().session_id
        (folder() / "composition.json").unlink()
    damaged = ProjectSessions.of(AppDirs.find()).folder(session) / "metadata.json"
    damaged.write_bytes(damaged.read_bytes()[:40])
    call("session", "repair", session)

    refused = call("resume", session, "Go on", expect=1).output
    assert "composition.json: the file is missing" in refused
    assert "--with-current-plan" in refused


def child(project: Path, responses: JSONValue) -> str:
    """Run a session, let it have stored an agent's session as delegation does, and return the id of that one."""
    profile(
        Path(AppDirs.find().home), "work", plan_of(["one"], tools=["tool-filesystem"])
    )
    call("run", "Hello", "--profile", "work")
    store, parent = ProjectSessions.of(AppDirs.find()), latest().session_id
    plan = plan_of(
        responses, tools=["tool-filesystem", "tool-trials"], hooks=["hooks-approval"]
    )
    made = ChildRecord(
        session_id="c1", parent_id=parent, agent_name="scout", plan=plan, turn_count=1
    )
    children = StoredChildren(store=store, working_dir=str(project))
    anyio.run(children.save, made)
    return made.session_id


@pytest.mark.parametrize("is_forked", [False, True], ids=["resumed", "forked"])
def test_a_child_is_opened_with_its_own_plan(is_forked: bool, project: Path) -> None:
    """It has the guards that it had, and no tool that its family has not by now."""
    session = child(project, [DELETE, "seen"])
    stored = write(project / "a.txt", "kept")
    if is_forked:
        session = call("session", "fork", session).stdout.strip()

    done = call("resume", session, "Go on")

    assert done.stdout == "seen\n"
    assert call("resume", session, "Go on").stdout == "seen\n"
    assert stored.exists()
    assert "taken away meanwhile: tool-trials" in done.stderr


def test_a_child_gets_the_guards_that_its_family_has_now(project: Path) -> None:
    session = child(project, ["seen"])
    profile(
        Path(AppDirs.find().home),
        "work",
        plan_of(["one"], tools=["tool-filesystem"], hooks=["hooks-denies"]),
    )

    assert call("resume", session, "Go on").stdout == "Operation denied: not today\n"


def test_child_that_came_of_nothing_known_opened_with_own_plan(
    project: Path,
) -> None:
    session = child(project, ["seen"])
    shutil.rmtree(folder())

    assert call("resume", session, "Go on").stdout == "seen\n"


def test_imported_session_has_no_secret_and_current_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(AppDirs.find().home)
    profile(own, "work", plan_of(["one"]))
    call("run", "Hello", "--profile", "work", "--model", "m")
    exported = json.loads(
        call("session", "export", latest().session_id, "--as-is").stdout
    )
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    secrets = [
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "sk-proj-" + "a1B2c3D4" * 6,
        "correct-horse-battery",
    ]
    for number, secret in enumerate(secrets):
        said = json.dumps({"stdout": f'export TOKEN="{secret}"\n{secret}'})
        message: JSONObject = {
            "role": "user",
            "content": said,
            "metadata": {secret: secret},
        }
        exported["messages"].append({"turn": secret, "message": message})
        exported["session"] |= {
            "session_id": secret,
            "name": secret,
            "tags": [secret],
            "prompt": secret,
        }
        exported["session"]["usage"] = {secret: number}
        call("session", "remove", latest().session_id, "-y")
        call("session", "import", str(write(tmp_path / "s.json", json.dumps(exported))))

    for file in own.glob("**/*"):
        assert not any(secret in str(file.relative_to(own)) for secret in secrets)
        if file.is_file():
            assert not any(
                secret.encode() in file.read_bytes() for secret in secrets
            ), file
    call("profile", "use", "work")
    done = again("continue")
    assert "It is not recorded what this session was made of: it was imported" in done
    assert latest().model is None


def test_an_import_does_not_undo_what_was_spent(tmp_path: Path) -> None:
    profile(
        Path(AppDirs.find().home), "work", plan_of([{"text": "one", "usage": [30, 10]}])
    )
    call("run", "Hello", "--profile", "work")
    file = write(
        tmp_path / "s.json", call("session", "export", latest().session_id).stdout
    )
    call("session", "remove", latest().session_id, "-y")
    call("session", "import", str(file))
    assert latest().spending["total_tokens"] == 40
    exported = json.loads(file.read_text())
    exported["session"]["spending"] = {"total_tokens": -1}
    refused = call(
        "session", "import", str(write(file, json.dumps(exported))), expect=1
    )
    assert "total_tokens: a whole number from 0; got -1" in refused.stderr


@pytest.mark.process
def test_what_session_made_of_recorded_before_any_module_runs(
    tmp_path: Path,
) -> None:
    plan = tmp_path / "plan.json"
    made = plan_of(["one"], hooks=["hooks-approval"])
    plan.write_text(json.dumps({**made, "providers": ["provider-forever"]}), "utf-8")
    with start("run", "Hello", "--plan", str(plan)) as process:
        read_until(process.stderr, "mounting")
        process.kill()
        process.wait()

    assert latest().has_composition
    recorded = json.loads((folder() / "composition.json").read_text())["plan"]
    assert recorded["hooks"] == ["hooks-approval"]
