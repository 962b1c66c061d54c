"""How far a session reaches: the sandbox of its programs, and the limits of what it spends."""

from __future__ import annotations

from typing import ClassVar

import anyio
import pytest

from amplifier_kit.processes import find_sandbox
from amplifier_sdk.jsontypes import JSONObject
from tests.seams.columns.guard import PLANS, TALLY, Calls, Guard, Reasons, results_of
from tests.seams.modules import SCRIPT, TOKENS, Call
from tests.seams.stage import Made, Outcome, Stage
from tests.seams.starts import MOVED, STARTS, Start

__all__ = [
    "RecordedSpending",
    "Sandbox",
    "SessionCalls",
    "SessionTokens",
    "TenantBudget",
    "TurnLimit",
]


class Sandbox(Guard):
    """The sandbox of tool-bash: a program that may run writes in the project and nowhere else."""

    name = "sandbox"
    runs_programs = True

    def made(self) -> Made:
        config: JSONObject = {
            "require_sandbox": True,
            "rules": [{"decision": "allow", "commands": ["touch **"]}],
        }
        return Made(plan={"tools": [{"module": "tool-bash", "config": config}]})

    def prepare(self, stage: Stage) -> None:
        if anyio.run(find_sandbox, "auto") == "none":
            pytest.skip("no sandbox works here")
        stage.calls = (
            Call("bash", {"command": f"touch {stage.root / 'outside'} inside"}),
        )

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert not (stage.root / "outside").exists()

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        # there the command's exit code is the outcome's
        if start.name != "tool-invoke":
            super().plays(stage, start, outcome)
        assert (stage.project / "inside").exists(), (
            f"the command did not run: {outcome.text + results_of(outcome)}"
        )


class SessionCalls(Guard):
    """`session_tool_calls`: no session runs more, over all the times that it is opened."""

    name = "session-tool-calls"
    begin: ClassVar[Calls] = (TALLY, TALLY)
    calls: ClassVar[Calls] = (TALLY,) * 8
    without: ClassVar[Reasons] = {"tool-invoke": "a session of one call"}
    limit: ClassVar[int] = 6

    def made(self) -> Made:
        return Made(plan={"session": {"limits": {"session_tool_calls": self.limit}}})

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        ran = SCRIPT.ran if start.is_same else outcome.ran
        assert len(ran) <= self.limit, f"{len(ran)} calls ran"


class SessionTokens(Guard):
    """`session_tokens`: no session spends more than one last answer beyond, over all the times that it is opened."""

    name = "session-tokens"
    begin: ClassVar[Calls] = (TALLY, TALLY)
    calls: ClassVar[Calls] = (TALLY,) * 20
    without: ClassVar[Reasons] = {"tool-invoke": "no model is asked"}
    limit: ClassVar[int] = 10 * TOKENS

    def made(self) -> Made:
        return Made(plan={"session": {"limits": {"session_tokens": self.limit}}})

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        spent = TOKENS * len(SCRIPT.asked if start.is_same else outcome.asked)
        last = TOKENS * (2 if start.is_child else 1)
        # a session by itself, beside the two requests of its parent
        if start.name == "child-by-id":
            last += 2 * TOKENS
        assert spent <= self.limit + last, f"{spent} tokens were spent"


class RecordedSpending(Guard):
    """What a session spent never falls: the records have every token."""

    name = "recorded-spending"
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {
        **dict.fromkeys(PLANS, "a program keeps no record"),
        "tool-invoke": "no model is asked",
    }

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        recorded = sum(_tokens(session) for session in start.records(stage))
        assert recorded >= TOKENS * len(SCRIPT.asked)


class TurnLimit(Guard):
    """`iterations`: a turn asks the model no more often."""

    name = "iterations"
    calls: ClassVar[Calls] = (TALLY,) * 8
    without: ClassVar[Reasons] = {"tool-invoke": "no model is asked"}
    limit: ClassVar[int] = 3

    def made(self) -> Made:
        return Made(plan={"session": {"limits": {"iterations": self.limit}}})

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert outcome.ran.count("tally") < self.limit


class TenantBudget(Guard):
    """A tenant's budget, which was lowered since: no process of a server asks a model beyond it."""

    name = "tenant-budget"
    calls: ClassVar[Calls] = (TALLY,) * 3
    without: ClassVar[Reasons] = {
        start.name: "only a server has tenants"
        for start in (*STARTS, *MOVED)
        if start.name != "served-session"
    }

    def tighten(self, stage: Stage, start: Start) -> None:
        limits: JSONObject = {"tenants": {"*": {"tokens": {"day": 10}}}}
        stage.made = Made(settings={"server": {"limits": limits}})

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert outcome.is_refused
        assert outcome.asked == ()
        assert "10 tokens a day" in outcome.reported


def _tokens(session: JSONObject) -> int:
    usage = session["usage"]
    tokens = usage.get("total_tokens", 0) if isinstance(usage, dict) else 0
    assert isinstance(tokens, int)
    return tokens
