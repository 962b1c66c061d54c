"""`amplifier session move` brings sessions into the database and back, on another machine as well."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amplifier.cli import main
from amplifier.testing.postgres import PASSWORD, PostgresServer
from amplifier_sdk.jsontypes import JSONObject, JSONValue

pytestmark = pytest.mark.process

TEXT = 'Grüße \u0000 𝄞 "quoted" \u2028 % _ \\'


def _export(session_id: str, name: str) -> JSONObject:
    said: list[JSONValue] = [
        {"turn": "t1", "message": {"role": "user", "content": TEXT}},
        {"turn": "t1", "message": {"role": "assistant", "content": "Zebra first."}},
    ]
    about: JSONObject = {
        "session_id": session_id,
        "created": 1000.5,
        "updated": 2000.25,
        "name": name,
        "tags": ["b", "a"],
    }
    return {
        "format": "amplifier.session",
        "version": 1,
        "session": about,
        "messages": said,
    }


def _amplifier(project: Path, home: str, *words: str, expect: int = 0) -> Result:
    """Run a command in the project, in this process."""
    runner = CliRunner(env={"AMPLIFIER_HOME": str(project / home)})
    with chdir(project):
        done = runner.invoke(main, ["session", *words])
    assert done.exit_code == expect, done.stderr
    return done


def _files(project: Path, home: str) -> dict[str, bytes]:
    files = (project / home).rglob("sessions/*/*")
    return {
        f"{file.parent.name}/{file.name}": file.read_bytes()
        for file in files
        if file.name != "lease.json"
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".amplifier").mkdir(parents=True)
    for session_id, name in (("alpha", "first"), ("beta", "second")):
        file = tmp_path / f"{session_id}.json"
        file.write_text(json.dumps(_export(session_id, name)), "utf-8")
        _amplifier(folder, "home", "import", str(file))
    return folder


def test_sessions_come_back_byte_for_byte(
    project: Path, server: PostgresServer, namespace: str
) -> None:
    options = ("--namespace", namespace)
    before = _files(project, "home")
    assert len(before) >= 4

    moved = _amplifier(project, "home", "move", "--to-store", server.url(), *options)
    assert sorted(moved.stdout.split()) == ["alpha", "beta"]
    assert _files(project, "home") == {}
    back = ("move", "--from-store", server.url(), "--to-store", "files", *options)
    _amplifier(project, "home-2", *back, "--session", "beta")
    _amplifier(project, "home", *back)

    both = _files(project, "home") | _files(project, "home-2")
    assert both == before
    listed = _amplifier(project, "home-2", "list", "--output", "json")
    (beta,) = json.loads(listed.stdout)
    assert (beta["session_id"], beta["name"]) == ("beta", "second")


def test_a_move_without_a_server_leaves_everything(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _files(project, "home")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    url = "postgresql://me@127.0.0.1:1/none"
    refused = _amplifier(project, "home", "move", "--to-store", url, expect=1)

    assert "PostgreSQL at 127.0.0.1:1" in refused.stderr
    assert "Check that the server runs" in refused.stderr
    assert _files(project, "home") == before


def test_a_session_that_is_there_already_stays(
    project: Path, server: PostgresServer, namespace: str, tmp_path: Path
) -> None:
    options = ("--namespace", namespace)
    _amplifier(project, "home", "move", "--to-store", server.url(), *options)
    _amplifier(project, "home", "import", str(tmp_path / "alpha.json"))
    (alpha,) = json.loads(
        _amplifier(project, "home", "list", "--output", "json").stdout
    )

    again = _amplifier(
        project, "home", "move", "--to-store", server.url(), *options, expect=1
    )

    assert f"it stays: {alpha['session_id']}" in again.stderr
