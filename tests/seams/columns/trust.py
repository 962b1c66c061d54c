"""What a project's folder may do: nothing before it is trusted, and nothing else than what was trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from amplifier_sdk.jsontypes import JSONObject
from tests.seams.columns.guard import (
    PLANS,
    TALLY,
    Calls,
    Guard,
    KeepsNotes,
    Reasons,
    results_of,
)
from tests.seams.modules import Call
from tests.seams.stage import NOTES, Made, Outcome, Stage
from tests.seams.starts import EmbeddedStart, Start

__all__ = [
    "AddedPlugin",
    "AddedPluginChanged",
    "TrustChanged",
    "TrustedFileEdit",
    "TrustedHooks",
    "Untrusted",
]


class Untrusted(Guard):
    """What an untrusted folder brings along runs nothing and changes nothing."""

    name = "trust"
    by_profile = True
    calls: ClassVar[Calls] = (TALLY,)

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-shell"}]})

    def prepare(self, stage: Stage) -> None:
        leave = {"hooks": [{"type": "command", "command": "touch RAN"}]}
        _write_hooks(
            stage,
            {
                event: [leave]
                for event in ("SessionStart", "PreToolUse", "UserPromptSubmit")
            },
        )
        module = stage.project / ".amplifier/modules/hooks-brought"
        module.mkdir(parents=True)
        (module / "brought.py").write_text("open('RAN', 'w')\n")
        brought = {
            "modules": {
                "hooks": [
                    {"module": "hooks-brought", "source": "./modules/hooks-brought"}
                ]
            }
        }
        (stage.project / ".amplifier/settings.yaml").write_text(json.dumps(brought))

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert not (stage.project / "RAN").exists()

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        if not isinstance(start, EmbeddedStart):
            assert "trust" in outcome.reported, (
                "the person is told that something was left out"
            )


class TrustedHooks(KeepsNotes):
    """A hook of the project that the person trusted."""

    name = "trusted-hooks"
    runs_programs = True
    by_profile = True
    reason = "nothing is deleted here"

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-shell"}]})

    def prepare(self, stage: Stage) -> None:
        command = f"if grep -q delete; then echo {self.reason} >&2; exit 2; fi"
        _write_hooks(
            stage,
            {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]},
        )
        assert stage.amplifier("trust", "grant").code == 0


class TrustChanged(TrustedHooks):
    """A hook that was trusted and has changed since ends the turn; nothing runs without it."""

    name = "trusted-hooks-changed"

    def tighten(self, stage: Stage, start: Start) -> None:
        _write_hooks(stage, {})

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Assert that it is said why the turn did not do its work."""
        assert "trust" in outcome.text + results_of(outcome)


class AddedPlugin(KeepsNotes):
    """A hook of a plugin that the person added, and agreed to."""

    name = "added-plugin"
    runs_programs = True
    reason = "nothing is deleted by plugin"

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-shell"}]})

    def prepare(self, stage: Stage) -> None:
        folder = stage.root / "careful"
        command = f"if grep -q delete; then echo {self.reason} >&2; exit 2; fi"
        hook = {"hooks": [{"type": "command", "command": command}]}
        (folder / "hooks").mkdir(parents=True)
        (folder / "hooks/hooks.json").write_text(json.dumps({"PreToolUse": [hook]}))
        assert stage.amplifier("plugin", "add", str(folder), "--yes").code == 0


class AddedPluginChanged(AddedPlugin):
    """A plugin that is not what the person agreed to any more: nothing runs without its hook."""

    name = "added-plugin-changed"

    def tighten(self, stage: Stage, start: Start) -> None:
        (stage.home / "plugins/careful/hooks/hooks.json").write_text("{}")

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Assert that it is said why the turn did not do its work."""
        assert "agreed" in outcome.text + results_of(outcome)


class TrustedFileEdit(TrustedHooks):
    """What the person trusted: a command that would write over it asks, whatever else commands may do."""

    name = "trusted-files"
    calls: ClassVar[Calls] = (
        Call("bash", {"command": "cp notes.txt .claude/settings.json"}),
    )
    without: ClassVar[Reasons] = dict.fromkeys(
        PLANS, "a program's own session has no person who trusted the folder"
    )

    def made(self) -> Made:
        shell: JSONObject = {
            "sandbox": "none",
            "default_rules": False,
            "unlisted": "allow",
        }
        return Made(
            plan={
                "tools": [{"module": "tool-bash", "config": shell}],
                "hooks": [{"module": "hooks-shell"}],
            }
        )

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        settings = (stage.project / ".claude/settings.json").read_text()
        assert settings != NOTES, "what was trusted was written over"

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        if start.name == "tool-invoke":
            assert "Denied by approval" in outcome.text
        else:
            Guard.plays(self, stage, start, outcome)
            assert "Denied by approval" in results_of(outcome)


def _write_hooks(stage: Stage, hooks: Mapping[str, object]) -> None:
    file = stage.project / ".claude/settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"hooks": hooks}), "utf-8")
