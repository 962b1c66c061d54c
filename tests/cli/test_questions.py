"""What waits for a person: `run --ask-later` suspends the turn, and `answer` continues it, after a kill as well."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import BACKENDS, call, read_until, start, write_plan

pytestmark = pytest.mark.process

WAITS = 3


def calls(name: str) -> JSONObject:
    return {"tool_calls": [{"name": name, "arguments": {}}]}


SPEAK: JSONObject = {"deltas": ["I will speak."], **calls("speak")}


def plan_of(folder: Path, *responses: JSONValue) -> Path:
    """Write a plan whose model answers by what was said before, as models do."""
    modules = ("tool-trials", "tool-inquire", "tool-linger", "hooks-asks")
    wanted: list[JSONValue] = [*responses] if responses else [SPEAK, "The end."]
    asks = modules if not responses else modules[:-1]
    file = write_plan(folder, wanted, *asks)
    plan = json.loads(file.read_text())
    plan["providers"][0]["config"]["by_history"] = True
    file.write_text(json.dumps(plan))
    return file


def asked() -> tuple[str, str]:
    """Return the ids of the one question that waits, and of its session."""
    (question,) = json.loads(call("questions", "list", "--json").stdout)
    return question["question_id"], question["session_id"]


@BACKENDS
def test_answer_continues_the_same_turn(tmp_path: Path, backend: str) -> None:
    plan = ("--plan", str(plan_of(tmp_path)), "--backend", backend)
    first = call("run", *plan, "--ask-later", "go", expect=WAITS)
    question, session = asked()
    again = ("--backend", backend)
    continued = call("answer", question[:12], "allow", *again)
    repeated = call("answer", question, "Allow once", *again)
    late = call("answer", question, "deny", expect=1)
    (file,) = Path(os.environ["AMPLIFIER_HOME"]).rglob("transcript.jsonl")

    assert f"question {question[:12]} waits" in first.stderr
    assert f"'amplifier answer {question[:12]} allow' or 'deny'" in first.stderr
    assert "printed by a tool" not in first.output
    assert "printed by a tool" in continued.stderr
    assert continued.stdout.strip() == "The end."
    assert "The turn is over already." in repeated.stderr
    assert "printed by a tool" not in repeated.output
    assert "was answered 'Allow once'" in late.output
    assert file.parent.name == session
    assert file.read_text().count('"go"') == 1
    assert json.loads(call("questions", "list", "--json").stdout) == []


def test_denied_call_does_not_run(tmp_path: Path) -> None:
    plan = str(plan_of(tmp_path))
    call("run", "--plan", plan, "--ask-later", "go", expect=WAITS)
    denied = call("answer", asked()[0], "deny")

    assert "printed by a tool" not in denied.output
    assert "The end." in denied.stdout


@BACKENDS
def test_question_outlives_a_kill_before_and_after_its_answer(
    tmp_path: Path, backend: str
) -> None:
    plan = plan_of(tmp_path, calls("inquire"), "The end.")
    script = tmp_path / "script.json"
    hangs: JSONValue = {"deltas": ["x"], "delay": 60}
    script.write_text(json.dumps([calls("inquire"), hangs]))
    made = json.loads(plan.read_text())
    made["providers"][0]["config"]["responses"] = str(script)
    plan.write_text(json.dumps(made))
    command = ("run", "--plan", str(plan), "--ask-later", "--backend", backend, "go")
    with start(*command) as program:
        read_until(program.stderr, "waits")
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    first, _ = asked()
    more = call("answer", first, "Ann", expect=WAITS)
    second, _ = asked()
    with start("answer", second, "blue") as program:
        read_until(program.stderr, "asked Ann blue")
        # the model is asked again by now, or soon
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    script.write_text(json.dumps([calls("inquire"), "The end."]))
    last = call("answer", second, "blue")

    assert first != second
    assert "waits" in more.stderr
    assert "The end." in last.stdout
    assert "asked Ann blue" not in last.output  # the call is not made again


def test_call_that_cannot_run_again_waits_in_its_program(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, calls("linger"), "The end.")
    command = ("run", "--plan", str(plan), "--ask-later", "go")
    with start(*command) as program:
        read_until(program.stderr, "waits")
        question, _ = asked()
        wrong = call("answer", question, '{"size": "big"}', expect=2)
        call("answer", question, '{"size": 7}')
        read_until(program.stderr, "heard {'size': 7}")
        assert program.wait(30) == 0

    assert "does not fit" in wrong.output


def test_call_that_waited_in_a_program_is_in_doubt_after_a_kill(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, calls("linger"), "The end.")
    command = ("run", "--plan", str(plan), "--ask-later", "go")
    with start(*command) as program:
        read_until(program.stderr, "waits")
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    question, session = asked()
    stored = call("answer", question, '{"size": 7}')
    resumed = call("run", "--resume", session, "What now?")

    assert "The end." not in stored.output
    assert "may have had their effect" in resumed.stderr
    assert "began" not in resumed.output


@BACKENDS
def test_cancelled_turn_withdraws_what_it_asked(tmp_path: Path, backend: str) -> None:
    plan = plan_of(tmp_path, calls("linger"), "The end.")
    command = ("run", "--plan", str(plan), "--ask-later", "--backend", backend, "go")
    with start(*command) as program:
        read_until(program.stderr, "waits")
        os.killpg(program.pid, signal.SIGINT)
        read_until(program.stderr, "Ctrl-C again stops at once.")
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(30) == 130
    (withdrawn,) = json.loads(call("questions", "list", "--all", "--json").stdout)
    refused = call("answer", withdrawn["question_id"], '{"size": 7}', expect=1)

    assert json.loads(call("questions", "list", "--json").stdout) == []
    assert "was answered 'null'" in refused.output


def test_new_prompt_ends_the_turn_that_waited(tmp_path: Path) -> None:
    plan = str(plan_of(tmp_path))
    call("run", "--plan", plan, "--ask-later", "go", expect=WAITS)
    question, session = asked()
    resumed = call("run", "--resume", session, "Something else.")
    refused = call("answer", question, "allow", expect=1)

    assert "The last turn was interrupted: go" in resumed.stderr
    assert "withdrawn by its session" in refused.output
    assert "printed by a tool" not in resumed.output


def test_declined_and_stored_answers(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, calls("inquire"), "The end.")
    call("run", "--plan", str(plan), "--ask-later", "go", expect=WAITS)
    question, _ = asked()
    stored = call("answer", question, "--decline", "--no-run")
    call("answer", question, "--decline", expect=WAITS)
    second, _ = asked()
    shown = call("questions", "show", second[:8]).stdout
    wrong = call("answer", second, "green", expect=2)
    both = call("answer", second, "red", "--decline", expect=2)
    ended = call("answer", second, "re")

    assert "null, by" in stored.stderr
    assert '"enum": ["red", "blue"]' in shown
    assert "The tool asks, in its own words: Which colour?" in shown
    assert "does not fit" in wrong.output
    assert "give ANSWER, or --decline" in both.output
    assert "asked None red" in ended.output


def test_what_cannot_wait_is_refused(tmp_path: Path) -> None:
    plan = str(plan_of(tmp_path))
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
