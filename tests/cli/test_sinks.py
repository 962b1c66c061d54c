"""What a session writes to the disk, and what the commands make of it: no file holds a secret that a tool returned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from amplifier.app.directories import AppDirs
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import call
from tests.kit.redaction.test_encoded import corpus

MADE: Final = "q8Zr2LmX5tVb7NcK1pWd"
PLAN: Final[JSONObject] = {
    "tools": ["tool-filesystem"],
    "hooks": [
        "hooks-redaction",
        {
            "module": "hooks-logging",
            "config": {"max_text": 1_000_000, "max_record_bytes": 10_000_000},
        },
    ],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def _written(secrets: list[str], *folders: Path) -> dict[str, list[str]]:
    """Return what is left of secrets in files, however deep they are encoded there."""
    texts = {
        str(path): path.read_text("utf-8")
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }
    forms = {
        secret: {secret, escaped(secret), escaped(escaped(secret))}
        for secret in secrets
    }
    return {
        path: left
        for path, text in texts.items()
        if (
            left := [
                secret
                for secret in secrets
                if any(form in text for form in forms[secret])
            ]
        )
    }


def escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


@pytest.mark.figures  # three hundred secrets, in all that shows a session
@pytest.mark.parametrize("context", ["context-simple", "context-persistent"])
def test_no_file_of_session_holds_secret_that_tool_returned(
    project: Path, tmp_path: Path, context: str
) -> None:
    cases = [
        (text, secret)
        for _, text, secret in corpus()
        if 12 <= len(secret) <= len(text) < 500
    ]
    secrets = [*{secret for _, secret in cases}, MADE]
    # refused, with what was given
    calls: list[JSONObject] = [{"file_path": "x", "offset": f"a\n{cases[0][0]}"}]
    for start in range(0, len(cases), 40):
        data = {
            "items": [text for text, _ in cases[start : start + 40]],
            "client_secret": MADE,
        }
        (project / f"data{start}.json").write_text(json.dumps(data, indent=1), "utf-8")
        calls.append({"file_path": f"data{start}.json"})
    responses: list[JSONValue] = [
        {"tool_calls": [{"name": "read_file", "arguments": given}]} for given in calls
    ]
    provider: JSONObject = {
        "module": "provider-scripted",
        "config": {"responses": [*responses, "done"]},
    }
    plan = PLAN | {
        "session": {"orchestrator": "loop-basic", "context": context},
        "providers": [provider],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan), "utf-8")

    assert (
        call("run", "Look.", "--plan", str(tmp_path / "plan.json")).stdout == "done\n"
    )
    out = tmp_path / "out"
    out.mkdir()
    (session,) = json.loads(call("session", "list", "--json").stdout)
    call("trace", "--to", str(out / "page.html"))
    for form in ("markdown", "json", "html"):
        (out / form).write_text(
            call("session", "export", session["session_id"], "--output", form).stdout,
            "utf-8",
        )
    (out / "logs").write_text(call("logs").stdout, "utf-8")

    assert len(secrets) >= 300
    transcript = next(AppDirs.find().home.rglob("transcript.jsonl")).read_text("utf-8")
    assert transcript.count("[REDACTED:") >= len(secrets)
    assert _written(secrets, AppDirs.find().home, out) == {}
