"""What waits for a person: stored by `run --ask-later`, answered by `answer`, and used when the session is resumed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from amplifier_sdk.jsontypes import JSONObject
from tests.cli.programs import BACKENDS, call, read_until, start, write_plan

pytestmark = pytest.mark.process

SPEAK: JSONObject = {
    "deltas": ["I will speak."],
    "tool_calls": [{"name": "speak", "arguments": {}}],
}


def _plan(folder: Path) -> Path:
    return write_plan(folder, [SPEAK, "The end."], "tool-trials", "hooks-asks")


def _asked() -> tuple[str, str]:
    """Return the ids of the one question that waits, and of its session."""
    (question,) = json.loads(call("questions", "list", "--json").stdout)
    return question["question_id"], question["session_id"]


def _resume(session: str, backend: str = "asyncio") -> str:
    arguments = ("--resume", session, "--ask-later", "--backend", backend)
    return call("run", *arguments, "It was answered.").output


@BACKENDS
def test_an_answer_allows_the_call_once_when_the_session_is_resumed(
    tmp_path: Path, backend: str
) -> None:
    plan = ("--plan", str(_plan(tmp_path)), "--backend", backend)
    first = call("run", *plan, "--ask-later", "go")
    question, session = _asked()
    answered = call("answer", question, "allow")
    again = call("answer", question, "allow")
    late = call("answer", question, "deny", expect=1)
    resumed = _resume(session, backend)
    repeated = _resume(session, backend)
    anew, _ = _asked()

    assert f"question {question} waits" in first.stderr
    assert "printed by a tool" not in first.output
    assert answered.stdout == again.stdout
    assert "was answered 'allow'" in late.output
    assert "printed by a tool" in resumed
    assert "printed by a tool" not in repeated
    assert anew == f"{question}-1"


def test_a_denied_call_does_not_run(tmp_path: Path) -> None:
    call("run", "--plan", str(_plan(tmp_path)), "--ask-later", "go")
    question, session = _asked()
    call("answer", question, "deny")

    assert "printed by a tool" not in _resume(session)


def test_what_nobody_answered_is_asked_once_and_does_not_run(tmp_path: Path) -> None:
    call("run", "--plan", str(_plan(tmp_path)), "--ask-later", "go")
    first = _asked()
    resumed = _resume(first[1])

    assert "printed by a tool" not in resumed
    assert _asked() == first


def test_a_question_outlives_the_program_that_asked_it(tmp_path: Path) -> None:
    """The program is killed after its question was stored, in the middle of its turn."""
    hangs: JSONObject = {"deltas": ["I wait."], "delay": 60}
    plan = write_plan(tmp_path, [SPEAK, hangs], "tool-trials", "hooks-asks")
    command = ("run", "--plan", str(plan), "--ask-later", "go")
    with start(*command) as program:
        while not json.loads(call("questions", "list", "--json").stdout):
            assert program.poll() is None
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    question, session = _asked()
    call("answer", question, "allow")

    assert question
    assert "allow" in call("questions", "show", question).stdout
    assert session in call("questions", "list", "--all", "--json").stdout


@BACKENDS
def test_a_cancelled_turn_withdraws_what_it_asked(tmp_path: Path, backend: str) -> None:
    hangs: JSONObject = {"deltas": ["I wait."], "delay": 60}
    plan = write_plan(tmp_path, [SPEAK, hangs], "tool-trials", "hooks-asks")
    command = ("run", "--plan", str(plan), "--ask-later", "--backend", backend, "go")
    with start(*command) as program:
        while not json.loads(call("questions", "list", "--json").stdout):
            assert program.poll() is None
        os.killpg(program.pid, signal.SIGINT)
        read_until(program.stderr, "Ctrl-C again stops at once.")
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(30) == 130
    (withdrawn,) = json.loads(call("questions", "list", "--all", "--json").stdout)
    question = withdrawn["question_id"]
    refused = call("answer", question, "allow", expect=1)

    assert withdrawn["is_void"]
    assert json.loads(call("questions", "list", "--json").stdout) == []
    assert "withdrawn by its session" in refused.output


def test_an_expired_question_is_asked_anew(tmp_path: Path) -> None:
    call("run", "--plan", str(_plan(tmp_path)), "--ask-later", "go")
    question, session = _asked()
    (file,) = Path(os.environ["AMPLIFIER_HOME"]).rglob("questions.json")
    stored = json.loads(file.read_text())
    stored[question]["expires"] = 1.0
    file.write_text(json.dumps(stored))
    late = call("answer", question, "allow", expect=1)

    assert json.loads(call("questions", "list", "--json").stdout) == []
    assert "expired" in call("questions", "list", "--all").stdout
    assert "state      expired" in call("questions", "show", question).stdout
    assert "has expired" in late.output
    assert "printed by a tool" not in _resume(session)
    assert _asked() == (f"{question}-1", session)


def test_what_cannot_wait_is_refused(tmp_path: Path) -> None:
    plan = str(_plan(tmp_path))
    for option in ("--yes", "--no-keep"):
        refused = call("run", "--plan", plan, "--ask-later", option, "go", expect=2)
        assert "needs a stored session that asks" in refused.output
    call("config", "set", "sessions.keep", "false")
    unstored = call("run", "--plan", plan, "--ask-later", "go", expect=1)
    assert "sessions are not stored" in unstored.output
    missing = call("questions", "show", "nothing", expect=1)

    assert "There is no question 'nothing'" in missing.output
    assert (
        "no question 'nothing'" in call("answer", "nothing", "allow", expect=1).output
    )
    assert "No question waits" in call("questions", "list").stderr
