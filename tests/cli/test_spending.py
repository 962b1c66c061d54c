"""What a session has spent never falls: not when it is opened again, and not when its process was killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.store.store import ProjectSessions
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import call, read_until, start


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty project, the working directory."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")


def calling(name: str) -> JSONObject:
    return {"tool_calls": [{"name": name, "arguments": {}}], "usage": [30, 10]}


def write(folder: Path, responses: JSONValue, **limits: JSONValue) -> str:
    """Write a plan whose script is a file of its own, so that it may change between turns."""
    (folder / "said.json").write_text(json.dumps(responses), "utf-8")
    plan: JSONValue = {
        "session": {
            "orchestrator": "loop-basic",
            "context": "context-simple",
            "limits": limits,
        },
        "providers": [
            {
                "module": "provider-scripted",
                "config": {"responses": str(folder / "said.json")},
            }
        ],
        "tools": ["tool-trials"],
    }
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    return str(folder / "plan.json")


def spending() -> JSONObject:
    return dict(ProjectSessions.of(AppDirs.find()).all()[0].record.spending)


def test_limits_of_session_count_what_earlier_processes_spent(
    tmp_path: Path,
) -> None:
    plan = write(
        tmp_path,
        [calling("speak"), {"text": "done", "usage": [30, 10]}],
        session_tokens=100,
    )
    call("run", "Hello", "--plan", plan)
    assert (spending()["total_tokens"], spending()["tool_calls"]) == (80, 1)

    call("continue", "Go on")
    assert spending()["total_tokens"] == 160
    refused = call("continue", "Go on", expect=1)
    assert "session_tokens" in refused.stderr
    assert spending()["total_tokens"] == 160


def test_calls_of_tools_are_counted_over_all_processes(tmp_path: Path) -> None:
    plan = write(
        tmp_path, [calling("speak"), calling("speak"), "done"], session_tool_calls=3
    )
    call("run", "Hello", "--plan", plan)
    call("continue", "Go on")
    assert spending()["tool_calls"] == 3
    assert "session_tool_calls" in call("continue", "Go on", expect=1).stderr


@pytest.mark.process
def test_a_killed_turn_has_spent_what_its_journal_says(tmp_path: Path) -> None:
    plan = write(tmp_path, [{"text": "done", "usage": [30, 10]}], session_tokens=100)
    call("run", "Hello", "--plan", plan)
    (tmp_path / "said.json").write_text(json.dumps([calling("block")]), "utf-8")
    with start("continue", "Go on") as process:
        read_until(process.stderr, "blocking")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert spending()["total_tokens"] == 40

    (tmp_path / "said.json").write_text(
        json.dumps([{"text": "done", "usage": [30, 10]}]), "utf-8"
    )
    call("continue", "Go on")
    assert spending()["total_tokens"] == 120
    assert "session_tokens" in call("continue", "Go on", expect=1).stderr


def test_record_of_earlier_version_counts_as_far_as_it_goes(
    tmp_path: Path,
) -> None:
    call(
        "run",
        "Hello",
        "--plan",
        write(tmp_path, [{"text": "done", "usage": [30, 10]}], session_tokens=70),
    )
    file = ProjectSessions.of(AppDirs.find()).all()[0].folder / "metadata.json"
    record = json.loads(file.read_text())
    del record["spending"], record["checksum"]
    file.write_text(json.dumps(record), "utf-8")

    call("continue", "Go on")
    assert "session_tokens" in call("continue", "Go on", expect=1).stderr
    assert spending()["total_tokens"] == 80


@pytest.mark.process
@pytest.mark.parametrize("child_first", [True, False])
def test_a_killed_child_counts_for_its_parent(
    tmp_path: Path, *, child_first: bool
) -> None:
    task: JSONObject = {
        "name": "task",
        "arguments": {"agent": "scout", "instruction": "Look."},
    }
    scout: JSONObject = {
        "module": "provider-scripted",
        "config": {"responses": str(tmp_path / "scout.json")},
    }
    file = Path(write(tmp_path, [{"tool_calls": [task], "usage": [30, 10]}]))
    (tmp_path / "scout.json").write_text(json.dumps([calling("block")]), "utf-8")
    plan = json.loads(file.read_text("utf-8"))
    plan["tools"].append("tool-task")
    plan["agents"] = {"scout": {"providers": [scout]}}
    file.write_text(json.dumps(plan), "utf-8")
    with start("run", "Hello", "--plan", str(file)) as process:
        read_until(process.stderr, "blocking")
        process.send_signal(signal.SIGKILL)
        process.wait()

    done = json.dumps([{"text": "done", "usage": [0, 1]}])
    for name in ("said.json", "scout.json"):
        (tmp_path / name).write_text(done, "utf-8")
    sessions = ProjectSessions.of(AppDirs.find()).all(children=True)
    ids = {each.record.parent_id is None: each.record.session_id for each in sessions}
    for is_root in (not child_first, child_first):
        call("run", "Go on", "--resume", ids[is_root])
    assert spending()["total_tokens"] == 81
    assert spending()["children"] == 1
