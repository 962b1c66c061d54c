"""Who decides about a call: approval, the person's rules, and what a session has of which nothing is said."""

from __future__ import annotations

import re
import sys
from typing import ClassVar, Final

from amplifier_sdk.jsontypes import JSONObject
from tests.seams.columns.guard import (
    DELETE,
    EDIT,
    EMBEDDED,
    NEW,
    PLANS,
    Calls,
    KeepsNotes,
    Reasons,
    results_of,
)
from tests.seams.modules import Call
from tests.seams.stage import NOTES, Made, Outcome, Stage
from tests.seams.starts import EmbeddedStart, Start

__all__ = [
    "AllowedTool",
    "Approval",
    "BaseProfile",
    "CommandEdit",
    "CommandEditRule",
    "DefaultSession",
    "DeniedTool",
    "DenyPaths",
    "DenyRule",
    "DenyRuleSince",
    "ModuleGoneSince",
    "ToolRemovedSince",
    "WeakenedProfile",
]

DENY: Final[JSONObject] = {
    "module": "hooks-approval",
    "config": {
        "otherwise": "allow",
        "rules": [
            {
                "decision": "deny",
                "tools": ["delete"],
                "reason": "nothing is deleted here",
            }
        ],
    },
}


class Approval(KeepsNotes):
    """hooks-approval: what changes files is asked about, and nobody can be asked."""

    name = "approval"

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-approval"}]})


class DenyRule(KeepsNotes):
    """A deny rule of the session's plan or profile."""

    name = "deny-rule"
    reason = "nothing is deleted here"

    def made(self) -> Made:
        return Made(plan={"hooks": [DENY]})


class DeniedTool(KeepsNotes):
    """`--deny-tool` of the command that begins the session; the one that resumes it does not name it again."""

    name = "deny-tool-option"
    reason = "--deny-tool delete"
    without: ClassVar[Reasons] = {
        **dict.fromkeys(EMBEDDED, "it is an option of commands"),
        "tool-invoke": "the person names the tool",
        "import": "its composition is the one of now",
    }

    def prepare(self, stage: Stage) -> None:
        stage.options = ("--deny-tool", "delete")


class AllowedTool(DenyRule):
    """`--allow-tool` of every command: what a rule denies stays denied."""

    name = "allow-tool-option"
    without: ClassVar[Reasons] = {
        **dict.fromkeys(EMBEDDED, "it is an option of commands"),
        **dict.fromkeys(("acp", "acp-load", "mcp-agent"), "a client asks the person"),
        "tool-invoke": "the person names the tool",
    }

    def prepare(self, stage: Stage) -> None:
        stage.options = stage.again = ("--allow-tool", "*")


class DenyPaths(KeepsNotes):
    """A deny rule on paths: a command whose words lead there is denied, as the tools that take a path are."""

    name = "deny-paths"
    reason = "the notes are the person's own"
    calls: ClassVar[Calls] = (
        Call("bash", {"command": "cd . && mv n*.txt gone.txt"}),
        DELETE,
    )

    def made(self) -> Made:
        rule: JSONObject = {
            "decision": "deny",
            "paths": ["notes.txt"],
            "reason": self.reason,
        }
        shell: JSONObject = {
            "sandbox": "none",
            "default_rules": False,
            "unlisted": "allow",
        }
        return Made(
            plan={
                "tools": [{"module": "tool-bash", "config": shell}],
                "hooks": [
                    {
                        "module": "hooks-approval",
                        "config": {"otherwise": "allow", "rules": [rule]},
                    }
                ],
            }
        )


class WeakenedProfile(DenyRule):
    """The same rule, of a session whose profile has lost it since."""

    name = "deny-rule-lost-since"
    by_profile = True
    without: ClassVar[Reasons] = {
        **dict.fromkeys(NEW, "it begins with what the profile says now"),
        "import": "an imported session begins with what the profile says now",
        "embedded-resumed-child": "its parent is opened with what the plan says now",
    }

    def tighten(self, stage: Stage, start: Start) -> None:
        stage.made = Made(settings=stage.made.settings)
        stage.write()


class DenyRuleSince(DenyRule):
    """A deny rule that the person put into their settings, or a program into its plan, since the session began."""

    name = "deny-rule-since"
    by_profile = True

    def made(self) -> Made:
        return Made()

    def tighten(self, stage: Stage, start: Start) -> None:
        if start.name in PLANS:
            stage.change({"hooks": [DENY]}, {})
        else:
            stage.change({}, {"modules": {"hooks": [DENY]}})


class ToolRemovedSince(KeepsNotes):
    """A tool that the plan has no more, where the person says that the plan of now holds."""

    name = "tool-removed-since"
    reason = "delete"
    without: ClassVar[Reasons] = {
        **dict.fromkeys(NEW, "the tool was never there"),
        "import": "its composition is the one of now in any case",
    }

    def tighten(self, stage: Stage, start: Start) -> None:
        stage.removed = ("tool-filesystem",)
        stage.write()
        stage.again += ("--with-current-plan", "--plan", str(stage.root / "plan.json"))


class ModuleGoneSince(KeepsNotes):
    """A module that guards and is not installed any more: the start is refused, and names it."""

    name = "module-gone-since"
    without: ClassVar[Reasons] = dict.fromkeys(NEW, "it could not begin")

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-sentinel"}]})

    def tighten(self, stage: Stage, start: Start) -> None:
        sys.path.remove(str(stage.packages / "sentinel"))

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert outcome.is_refused, outcome.text
        assert "hooks-sentinel" in outcome.reported


class DefaultSession(KeepsNotes):
    """A session of which nothing is said: it reads in the project, asks before it changes files, and names the flag."""

    name = "default"
    by_profile = True
    profile: ClassVar[str | None] = None
    calls: ClassVar[Calls] = (DELETE, Call("read_file", {"file_path": "notes.txt"}))
    without: ClassVar[Reasons] = dict.fromkeys(PLANS, "a program's plan says all of it")

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        if start.name != "tool-invoke":
            assert "Buy milk" in results_of(outcome), "reading in the project runs"
        asks = start.name in ("chat", "acp", "acp-load", "acp-left", "run-ask-later")
        if not asks and not isinstance(start, EmbeddedStart):
            assert re.search(r"--[a-z]", outcome.text + results_of(outcome)), (
                "the message names the flag"
            )


class CommandEdit(DefaultSession):
    """The same of a command: one that edits a file waits for the answer that an edit by the file tools waits for."""

    name = "default-command-edit"
    runs_programs = True
    calls: ClassVar[Calls] = (EDIT, *DefaultSession.calls[1:])

    def made(self) -> Made:
        return Made(settings={"modules": {"tools": [{"module": "tool-bash"}]}})

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert stage.notes.read_text() == NOTES, "the file was written over"


class CommandEditRule(KeepsNotes):
    """A deny rule on paths, where a command writes over what it names."""

    name = "deny-paths-command-edit"
    reason = "the notes are the person's own"
    runs_programs = True
    calls: ClassVar[Calls] = (EDIT,)

    def made(self) -> Made:
        rule: JSONObject = {
            "decision": "deny",
            "paths": ["notes.txt"],
            "reason": self.reason,
        }
        config: JSONObject = {"otherwise": "allow", "rules": [rule]}
        return Made(
            plan={
                "tools": [{"module": "tool-bash"}],
                "hooks": [{"module": "hooks-approval", "config": config}],
            }
        )

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert stage.notes.read_text() == NOTES, "the file was written over"


class BaseProfile(DefaultSession):
    """The same of the profile that comes along."""

    name = "foundation-base"
    profile: ClassVar[str | None] = "foundation:base"
