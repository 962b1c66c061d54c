"""What is written down of a session: without secrets, wholly, and so that it can be found again."""

from __future__ import annotations

import json
from typing import ClassVar

from amplifier_sdk.jsontypes import JSONObject
from tests.seams.columns.guard import EDIT, PLANS, TALLY, Calls, Guard, results_of
from tests.seams.modules import SCRIPT, SECRET, Call
from tests.seams.stage import GO, NOTES, Made, Outcome, Stage
from tests.seams.starts import Start

__all__ = ["Backup", "CommandBackup", "Logging", "Redaction"]


class Redaction(Guard):
    """hooks-redaction: a secret of the prompt, of a tool's result or of an imported file is in no file."""

    name = "redaction"
    begin: ClassVar[Calls] = (Call("fetch"),)
    calls: ClassVar[Calls] = (Call("fetch"),)
    secret: ClassVar[str] = SECRET
    mark: ClassVar[str] = "[REDACTED"

    def made(self) -> Made:
        return Made(
            plan={"hooks": [{"module": "hooks-redaction"}, {"module": "hooks-logging"}]}
        )

    def prepare(self, stage: Stage) -> None:
        stage.prompt = f"{GO} My token is {self.secret}, write it down."
        stage.exported = f"My token is {self.secret}."

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert stage.files_with(self.secret) == []

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        assert stage.files_with(self.mark), "nothing was written down"


class Backup(Guard):
    """hooks-backup: what is deleted is there, belongs to a session that a command lists, and goes with it."""

    name = "backup"

    def made(self) -> Made:
        allow: JSONObject = {"rules": [{"decision": "allow", "tools": ["delete"]}]}
        return Made(
            plan={
                "hooks": [
                    {"module": "hooks-backup"},
                    {"module": "hooks-approval", "config": allow},
                ]
            }
        )

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert stage.notes.exists() or stage.files_with("as it was written before"), (
            "there is no copy"
        )

    def is_done(self, stage: Stage) -> bool:
        """Whether the call ran."""
        return not stage.notes.exists()

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        assert self.is_done(stage), f"the call did not run: {results_of(outcome)}"
        copies = [
            stage.home / name for name in stage.files_with("as it was written before")
        ]
        if start.name in PLANS:
            assert all(
                path.is_relative_to(stage.home / "embedded/sessions" / stage.session_id)
                for path in copies
            )
            return
        listed = stage.sessions(children=True)
        folders = [str(session["folder"]) for session in listed]
        assert all(
            any(path.is_relative_to(folder) for folder in folders) for path in copies
        ), "no session has the copy"
        for session in stage.sessions():
            removed = ("session", "remove", "-y", str(session["session_id"]))
            assert stage.amplifier(*removed, *stage.where).code == 0
        assert stage.files_with("as it was written before") == [], (
            "the copy outlives every session"
        )


class CommandBackup(Backup):
    """The same of a command that writes over the notes: it runs where edits are allowed, and there is a copy."""

    name = "backup-of-commands"
    runs_programs = True
    calls: ClassVar[Calls] = (EDIT,)

    def made(self) -> Made:
        allow: JSONObject = {"otherwise": "allow"}
        return Made(
            plan={
                "tools": [{"module": "tool-bash"}],
                "hooks": [
                    {"module": "hooks-backup"},
                    {"module": "hooks-approval", "config": allow},
                ],
            }
        )

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        if stage.notes.read_text() != NOTES:
            assert stage.files_with("as it was written before"), "there is no copy"

    def is_done(self, stage: Stage) -> bool:
        return "rum" in stage.notes.read_text()


class Logging(Guard):
    """hooks-logging: every call that ran is in a log."""

    name = "logging"
    calls: ClassVar[Calls] = (TALLY, TALLY)

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-logging"}]})

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        logs = [
            path.read_text("utf-8")
            for path in stage.files()
            if path.name == "events.jsonl"
        ]
        # a store may have a copy of what the machine has
        records = {line for log in logs for line in log.splitlines()}
        lines = map(json.loads, records)
        logged = [
            line
            for line in lines
            if line["event"] == "tool:post" and line["data"]["tool_name"] == "tally"
        ]
        assert len(logged) == SCRIPT.ran.count("tally")
