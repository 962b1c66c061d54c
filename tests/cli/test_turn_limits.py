"""`--max-turns` and `--max-cost` hold however a session begins, and only lower what it allows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier_sdk.jsontypes import JSONObject
from tests.cli.programs import call, write_plan

CALL: JSONObject = {"tool_calls": [{"name": "speak", "arguments": {}}]}
BEGINNINGS = {
    "run": ("run", "Go"),
    "run --continue": ("run", "--continue", "Go"),
    "continue": ("continue", "Go"),
    "resume": ("resume", "trip", "Go"),
    "run --resume": ("run", "--resume", "trip", "Go"),
    "fork": ("resume", "copy", "Go"),
}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A plan whose model calls a tool for ever, and a stored session of it with a fork."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    script = [CALL] * 60
    return str(write_plan(tmp_path, script, "tool-trials"))


def asked(*arguments: str) -> int:
    """Run a turn and return how often the model was called."""
    answer = json.loads(call(*arguments, "--output", "json", "--yes").stdout)
    iterations = answer["iterations"]
    assert isinstance(iterations, int)
    return iterations


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
def test_no_more_calls_than_asked_for(plan: str, begin: tuple[str, ...]) -> None:
    assert asked("run", "First", "--plan", plan, "--max-turns", "5") == 5
    only = json.loads(call("session", "list", "--json").stdout)[0]["session_id"]
    call("session", "rename", only, "trip")
    call("session", "fork", "trip", "--name", "copy")

    # only a new session has to be told what it is made of
    made_of = ("--plan", plan) if begin == ("run", "Go") else ()
    assert asked(*begin, *made_of, "--max-turns", "3") == 3


def test_a_limit_is_recorded_and_never_raised(plan: str) -> None:
    asked("run", "First", "--plan", plan, "--max-turns", "3")

    assert asked("continue", "Again") == 3
    assert asked("continue", "More", "--max-turns", "9") == 3


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "much"])
def test_a_cost_is_an_amount_above_zero(plan: str, amount: str) -> None:
    refused = call("run", "x", "--plan", plan, f"--max-cost={amount}", expect=2)

    assert "is no amount above zero" in refused.stderr


@pytest.mark.parametrize(
    "begin", [("run", "Go"), ("continue", "Go"), ("resume", "copy", "Go")]
)
def test_a_turn_ends_when_it_has_cost_enough(
    tmp_path: Path, plan: str, begin: tuple[str, ...]
) -> None:
    dear: JSONObject = {
        **CALL,
        "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": "0.04"},
    }
    write_plan(tmp_path, [dear] * 60, "tool-trials")
    assert asked("run", "First", "--plan", plan, "--max-turns", "9") == 9
    only = json.loads(call("session", "list", "--json").stdout)[0]["session_id"]
    call("session", "fork", only, "--name", "copy")

    made_of = ("--plan", plan) if begin == ("run", "Go") else ()
    assert asked(*begin, *made_of, "--max-cost", "0.10") < 6
