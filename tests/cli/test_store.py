"""The same commands over a store of several machines: `--store`, or the setting `sessions.store`."""

from __future__ import annotations

import json
import os
import random
import signal
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store.choice import open_named_store
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.store import ProjectSessions
from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import SessionStore
from tests.cli.programs import (
    BACKENDS,
    call,
    read_until,
    start,
    write_plan,
)

URL: Final = "shared://db/sessions"


@pytest.fixture(autouse=True)
def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a URL of the test's own name files, which no project has."""

    async def open_shared(name: str, dirs: AppDirs, *, namespace: str) -> SessionStore:
        if name == "files":
            return FileSessionStore(ProjectSessions.of(dirs))
        if name.startswith("postgresql:"):
            return await open_named_store(name, dirs, namespace=namespace)
        assert name == URL
        return FileSessionStore(ProjectSessions(tmp_path / "shared" / namespace))

    monkeypatch.setattr("amplifier.app.store.choice.open_named_store", open_shared)


@BACKENDS
def test_a_session_is_begun_found_and_resumed_in_a_store(
    tmp_path: Path, backend: str
) -> None:
    plan = str(write_plan(tmp_path, ["Milk and rum."]))
    store = ("--store", URL)
    first = call("run", "--plan", plan, *store, "--backend", backend, "What is on it?")
    second = call("continue", *store, "--backend", backend, "And on Sunday?")
    (listed,) = json.loads(call("session", "list", *store, "--json").stdout)
    session = listed["session_id"]
    shown = call("session", "show", session[:8], *store).output
    hits = json.loads(call("session", "search", "MILK AND", *store, "--json").stdout)
    exported = json.loads(call("session", "export", session, *store).stdout)

    assert "Milk and rum." in first.output
    assert "Milk and rum." in second.output
    assert (listed["turn_count"], listed["folder"]) == (2, None)
    assert shown.count("Milk and rum.") == 2
    assert [hit["session_id"] for hit in hits] == [session]
    assert len(exported["messages"]) == 4
    # nothing of it stands in this machine's files
    assert (
        json.loads(call("session", "list", "--store", "files", "--json").stdout) == []
    )


def test_sessions_of_a_store_are_changed_there(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["Milk."]))
    store = ("--store", URL)
    call("run", "--plan", plan, *store, "What?")
    (listed,) = json.loads(call("session", "list", *store, "--json").stdout)
    session = listed["session_id"]
    call("session", "rename", session, "groceries", *store)
    call("session", "tag", "groceries", "food", *store)
    forked = call("session", "fork", "groceries", *store).stdout.strip()
    known = json.loads(call("session", "list", *store, "--json").stdout)
    tree = call("session", "tree", *store).stdout
    removed = call("session", "remove", forked, "--yes", *store).output
    call("session", "rename", session, *store)
    would = call("session", "cleanup", "--older-than", "0h", "--dry-run", *store).stdout
    cleaned = call("session", "cleanup", "--older-than", "0h", "--yes", *store).stdout

    assert {one["name"] for one in known} == {"groceries", None}
    assert next(one["tags"] for one in known if one["name"]) == ["food"]
    assert {one["session_id"] for one in known} == {session, forked}
    assert forked in tree
    assert forked in removed
    assert would == cleaned == f"{session}\n"
    assert json.loads(call("session", "list", *store, "--json").stdout) == []


def test_the_settings_choose_the_store(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["Milk."]))
    call("config", "set", "sessions.store", URL)
    call("config", "set", "sessions.namespace", "kitchen")
    call("run", "--plan", plan, "What?")

    (listed,) = json.loads(call("session", "list", "--json").stdout)
    assert (
        tmp_path / "shared" / "kitchen" / "sessions" / listed["session_id"]
    ).is_dir()
    assert (
        json.loads(call("session", "list", "--namespace", "x", "--json").stdout) == []
    )
    refused = call("session", "list", "--all-projects", expect=2)
    assert "--namespace names a project" in refused.output


def test_a_question_waits_in_the_store(tmp_path: Path) -> None:
    speak: JSONObject = {"tool_calls": [{"name": "speak", "arguments": {}}]}
    file = write_plan(tmp_path, [speak, "So."], "tool-trials", "hooks-asks")
    made = json.loads(file.read_text())
    # another program continues where this one was
    made["providers"][0]["config"]["by_history"] = True
    file.write_text(json.dumps(made))
    plan = str(file)
    store = ("--store", URL)
    call("run", "--plan", plan, "--ask-later", *store, "go", expect=3)
    (asked,) = json.loads(call("questions", "list", *store, "--json").stdout)
    answered = call("answer", asked["question_id"], "allow", *store).output

    assert "Allow once, by" in answered
    assert "printed by a tool" in answered
    assert "So." in answered
    assert "No question waits" in call("questions", *store).stderr
    assert "No question waits" in call("questions").stderr


def test_a_folder_that_nobody_trusts_chooses_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would send all that is said to a server of its author."""
    monkeypatch.chdir(tmp_path)
    plan = str(write_plan(tmp_path, ["Milk."]))
    settings = tmp_path / ".amplifier" / "settings.yaml"
    settings.parent.mkdir()
    settings.write_text(f"sessions:\n  store: {URL}\n")
    call("run", "--plan", plan, "What?")

    assert not (tmp_path / "shared").exists()
    assert len(json.loads(call("session", "list", "--json").stdout)) == 1


def test_what_is_stored_elsewhere_has_no_secrets(tmp_path: Path) -> None:
    letters = random.Random(5).choices(string.ascii_letters + string.digits, k=36)
    secret = f"ghp_{''.join(letters)}"
    plan = str(write_plan(tmp_path, [f"I noted {secret}."], "hooks-redaction"))
    call("run", "--plan", plan, "--store", URL, f"Note {secret}")
    files = [file for file in (tmp_path / "shared").rglob("*") if file.is_file()]

    assert len(files) > 3
    assert not [file for file in files if secret.encode() in file.read_bytes()]


def test_a_store_and_no_session_contradict_each_other() -> None:
    refused = call("run", "--no-keep", "--store", URL, "What?", expect=2)

    assert "--no-keep that it is not" in refused.output


def test_a_name_in_a_store_leads_nowhere_else(tmp_path: Path) -> None:
    plan = str(write_plan(tmp_path, ["Milk."]))
    call("run", "--plan", plan, "--store", URL, "What?")
    (folder,) = (tmp_path / "shared").rglob("sessions/*")
    (outside := tmp_path / "outside").write_text("mine")
    (folder / "link.txt").symlink_to(outside)
    (folder / "folder").mkdir()
    call("continue", "--store", URL, "And now?", expect=1)

    assert outside.read_text() == "mine"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    with running_server(programs) as server:
        yield server.url()


@pytest.mark.process
@pytest.mark.timeout(60)
def test_a_process_that_is_killed_leaves_its_turn_in_the_database(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    waits: JSONObject = {"tool_calls": [{"name": "wait", "arguments": {}}]}
    plan = str(write_plan(tmp_path, [waits], "tool-trials"))
    command = ("run", "--plan", plan, "--store", database, "--output", "ndjson", "go")
    with start(*command) as program:
        assert program.stdout is not None
        while b"tool_started" not in program.stdout.readline():
            assert program.poll() is None
        program.kill()
        program.wait()
    listed = call("session", "list", "--store", database, "--json")
    (session,) = json.loads(listed.stdout)
    shown = call("session", "show", session["session_id"], "--store", database)
    held = call("continue", "--store", database, "And now?", expect=1)

    assert session["state"] == "open"
    assert "Its last turn runs." in shown.stderr
    assert "is being written by amplifier" in held.stderr
    assert "Traceback" not in held.stderr


@pytest.mark.process
@pytest.mark.timeout(90)
def test_a_turn_that_is_stopped_lets_go_of_its_session(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    waits: JSONObject = {"tool_calls": [{"name": "wait", "arguments": {}}]}
    plan = write_plan(tmp_path, [waits], "tool-trials")
    place = ("--store", database, "--namespace", "stopped")
    command = ("run", "--plan", str(plan), *place, "--output", "ndjson", "go")
    with start(*command) as program:
        assert program.stdout is not None
        while b"tool_started" not in program.stdout.readline():
            assert program.poll() is None
        os.killpg(program.pid, signal.SIGINT)
        read_until(program.stderr, "Ctrl-C again stops at once.")
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(30) == 130
    (session,) = json.loads(call("session", "list", *place, "--json").stdout)
    shown = call("session", "show", session["session_id"], *place)

    assert (session["state"], session["turn_count"]) == ("idle", 1)
    assert "go" in shown.stdout


@pytest.mark.process
@pytest.mark.timeout(60)
def test_a_database_that_refuses_is_one_line(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = "postgresql://postgres@127.0.0.1:1/postgres"
    for command in (
        ("session", "list"),
        ("session", "show", "s1"),
        ("questions",),
        ("answer", "q1", "allow"),
        ("run", "hello"),
    ):
        refused = call(*command, "--store", closed, expect=1)
        assert "Traceback" not in refused.stderr
        assert "127.0.0.1:1" in refused.stderr, refused.stderr
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
    monkeypatch.setenv("PGPASSWORD", "wrong-one")
    wrong = call("session", "list", "--store", database, expect=1)
    assert "Check the user and the password" in wrong.stderr
    assert "wrong-one" not in wrong.stderr
