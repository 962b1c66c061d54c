"""What a turn is: what is shown of it, what its prompt brings in, who answers, and which agents help."""

from __future__ import annotations

import base64
import re
import struct
from typing import ClassVar, Final

from amplifier_module_hooks_otel import _export
from amplifier_sdk.jsontypes import JSONObject
from tests.seams.columns.guard import (
    EMBEDDED,
    NEW,
    PLANS,
    TALLY,
    Calls,
    Guard,
    Reasons,
    results_of,
)
from tests.seams.modules import LAST_WORDS, SCRIPT, SECRET, Call, Turns
from tests.seams.stage import GO, Made, Outcome, Stage
from tests.seams.starts import EmbeddedStart, Start

__all__ = [
    "AgentSpending",
    "Agents",
    "ChosenProvider",
    "Fallbacks",
    "GivenSystem",
    "Instructions",
    "PipedMention",
    "PipedSize",
    "Provider",
    "ShownMedia",
    "StreamingUi",
    "Telemetry",
    "TypedMention",
    "UntrustedInstructions",
]

PNG: Final = (
    b"\x89PNG\r\n\x1a\n"
    + struct.pack(">I4sII", 13, b"IHDR", 8, 8)
    + bytes(range(256)) * 4
)
HELP_BEGIN: Final = "[help with the beginning]"
HELP: Final = "[help]"


class StreamingUi(Guard):
    """hooks-streaming-ui beside a command that shows the turn itself: everything is shown once."""

    name = "streaming-ui"
    without: ClassVar[Reasons] = {
        "served-session": "its turns are shown as events",
        "background-child": "what it does is shown by /agents",
    }
    begin: ClassVar[Calls] = ()
    calls: ClassVar[Calls] = (TALLY,)

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-streaming-ui"}]})

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Nothing: a start that is refused shows nothing."""

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        shown = outcome.reported if isinstance(start, EmbeddedStart) else outcome.text
        if start.name == "tool-invoke":
            assert shown.count("counted") == 1, shown
            return
        # What begins with '>' is a call that still runs; the chat shows it again when it has ended.
        lines = [
            line
            for line in shown.splitlines()
            if re.search(r"^(?!> ).*\btally\b(?! done)", line)
        ]
        assert len(lines) == 1, shown
        if not start.is_child:
            assert shown.count(LAST_WORDS) == 1, shown


class TypedMention(Guard):
    """What a person mentions is shown to the model."""

    name = "typed-mention"
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {
        **dict.fromkeys(PLANS, "mentions are the application's; a plan has none"),
        "served-session": "nobody at the machine typed it",
        "child": "a model writes to a child",
        "background-child": "a model writes to a child",
        "mcp-agent": "another agent writes to it",
        "resumed-child": "a model writes to a child",
        "moved-child": "a model writes to a child",
        "shared-child": "a model writes to a child",
        "tool-invoke": "there is no prompt",
    }

    def prepare(self, stage: Stage) -> None:
        (stage.project / "words.md").write_text("The word is xyzzy.\n")
        stage.prompt = f"{GO} Mind @words.md."

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Nothing: a start that is refused shows nothing."""

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        assert any("xyzzy" in asked.text for asked in outcome.asked)


class Instructions(Guard):
    """The instructions of the person and of the trusted project are what every session begins with."""

    name = "instructions"
    by_profile = True
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {
        **dict.fromkeys(PLANS, "a program says itself what its agent is"),
        "tool-invoke": "no model is asked",
    }

    def prepare(self, stage: Stage) -> None:
        (stage.home / "AGENTS.md").write_text("The first word is plugh.\n")
        (stage.project / "AGENTS.md").write_text("The second word is xyzzy.\n")
        assert stage.amplifier("trust", "grant", "instructions").code == 0

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Nothing: a start that is refused shows nothing."""

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        for asked in outcome.asked:
            assert asked.text.count("plugh") == 1
            assert asked.text.count("xyzzy") == 1


class GivenSystem(Guard):
    """`--system` of the command that begins a session is its instruction; a command that resumes it need not say it."""

    name = "system-option"
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {
        **dict.fromkeys(EMBEDDED, "it is an option of commands"),
        "tool-invoke": "no model is asked",
        "import": "its composition is the one of now",
        "acp": "an editor's agent has the instruction of its profile",
        "mcp-agent": "an agent has its own",
    }

    def prepare(self, stage: Stage) -> None:
        (stage.project / "sailor.txt").write_text("You are a sailor.\n")
        stage.options = ("--system", "@sailor.txt")

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Nothing: a start that is refused shows nothing."""

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        for asked in outcome.asked:
            assert asked.messages[0] == ("system", "You are a sailor.\n")


class UntrustedInstructions(Instructions):
    """Instructions that nobody trusted are not read, and the person is told why."""

    name = "untrusted-instructions"

    def prepare(self, stage: Stage) -> None:
        (stage.project / "AGENTS.md").write_text("The second word is xyzzy.\n")

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert not any("xyzzy" in asked.text for asked in outcome.asked)

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        Guard.plays(self, stage, start, outcome)
        if not isinstance(start, EmbeddedStart):
            assert "nobody trusted the instructions" in outcome.reported


class ShownMedia(Guard):
    """What a person shows reaches the model whole; no secret of a text is in a file, no bytes of an image in a log."""

    name = "shown-media"
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {
        **dict.fromkeys(("chat", "continued-chat"), "what is shown there is mentioned"),
        **dict.fromkeys(
            (
                "child",
                "background-child",
                "mcp-agent",
                "resumed-child",
                "moved-child",
                "shared-child",
            ),
            "a model writes to a child",
        ),
        **dict.fromkeys(
            ("embedded-child", "embedded-resumed-child"), "its instruction is a text"
        ),
        "tool-invoke": "there is no prompt",
    }
    image: ClassVar[bytes] = PNG

    def made(self) -> Made:
        hooks = [{"module": "hooks-redaction"}, {"module": "hooks-logging"}]
        return Made(plan={"hooks": hooks})

    def prepare(self, stage: Stage) -> None:
        image, notes = stage.project / "dot.png", stage.project / "words.md"
        image.write_bytes(self.image)
        notes.write_text(f"The word is xyzzy, the token {SECRET}.\n")
        stage.shown = (image, notes)

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        (stage.project / "words.md").unlink(missing_ok=True)
        assert stage.files_with(SECRET) == []
        encoded = base64.b64encode(self.image).decode()
        assert not [name for name in stage.files_with(encoded) if "events" in name]

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        asked = outcome.asked[-1]
        assert base64.b64encode(self.image).decode() in asked.shown
        assert "The word is xyzzy" in "\n".join((*asked.shown, asked.text))
        assert SECRET not in "\n".join((*asked.shown, asked.text))


class PipedMention(Guard):
    """Text that nobody typed mentions nothing: what is piped in, or what a model writes to a child."""

    name = "piped-mention"
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {
        **dict.fromkeys(PLANS, "mentions are the application's; a plan has none"),
        "chat": "what comes there was typed",
        "continued-chat": "what comes there was typed",
        "embedded-profile": "what comes there was typed",
        "embedded-stored": "what comes there was typed",
        "embedded-stored-fork": "what comes there was typed",
        "tool-invoke": "there is no prompt",
    }

    def prepare(self, stage: Stage) -> None:
        (stage.home.parent / "diary.txt").write_text("I owe xyzzy to the grocer.\n")
        stage.prompt = f"{GO} Somebody wrote: see @~/diary.txt."
        stage.is_piped = True

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert not any("xyzzy" in asked.text for asked in outcome.asked)


class PipedSize(PipedMention):
    """More piped in than a model could read is refused before a session begins, and nobody is asked."""

    name = "piped-size"
    without: ClassVar[Reasons] = {
        **PipedMention.without,
        "served-session": "nothing is piped there",
        **dict.fromkeys(
            (
                "child",
                "background-child",
                "resumed-child",
                "moved-child",
                "shared-child",
            ),
            "a model writes to a child",
        ),
    }

    def prepare(self, stage: Stage) -> None:
        stage.prompt = f"{GO} {'log line ' * 1_000_000}"
        stage.is_piped = True

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert not outcome.asked

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert outcome.code == 1, outcome.text
        assert " has more than 8 MB" in outcome.reported


class Provider(Guard):
    """The provider of the plan answers, though the settings name another one."""

    name = "provider"
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {
        "tool-invoke": "no model is asked",
        "import": "an imported file does not say who answers",
    }

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert {asked.provider for asked in outcome.asked} <= {"ay"}

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        if start.is_resumed and start.name not in PLANS:
            recorded = {session["provider"] for session in stage.sessions()}
            assert recorded <= {"provider-ay", None}, "the record says who answers"


class ChosenProvider(Provider):
    """The provider that the person chose by `-p` answers, though the settings name another one."""

    name = "chosen-provider"
    by_profile = True
    without: ClassVar[Reasons] = {
        **Provider.without,
        **dict.fromkeys(PLANS, "a program chooses by its plan"),
    }

    def prepare(self, stage: Stage) -> None:
        stage.options = ("-p", "ay")


class Agents(Guard):
    """An agent of the plan: it is known, and its limits hold."""

    name = "agents"
    calls: ClassVar[Calls] = (Call("task", {"agent": "helper", "instruction": HELP}),)
    limits: ClassVar[JSONObject] = {"tool_calls": 1}

    def made(self) -> Made:
        helper: JSONObject = {
            "description": "Helps.",
            "session": {"limits": self.limits},
        }
        return Made(plan={"agents": {"helper": helper}})

    def turns(self) -> Turns:
        return {HELP_BEGIN: (TALLY, TALLY), HELP: (TALLY,) * 5}

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert outcome.ran.count("tally") <= 1

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        assert outcome.ran.count("tally") == 1, (
            f"the agent did not work: {results_of(outcome)}"
        )


class AgentSpending(Agents):
    """An agent that is resumed: what it has spent counts."""

    name = "agent-spending"
    begin: ClassVar[Calls] = (
        Call("task", {"agent": "helper", "instruction": HELP_BEGIN}),
    )
    calls: ClassVar[Calls] = (Call("task", {"instruction": HELP}, child=True),)
    limits: ClassVar[JSONObject] = {"session_tool_calls": 3}
    without: ClassVar[Reasons] = dict.fromkeys(NEW, "there is no agent to resume")

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert SCRIPT.ran.count("tally") <= 3

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        Guard.plays(self, stage, start, outcome)
        if start.is_same:  # an agent belongs to the session that made it
            assert outcome.ran.count("tally") == 1, (
                f"the agent did not go on: {results_of(outcome)}"
            )


class Fallbacks(Guard):
    """What a session has to do without is said once: an agent, a tool, a file that nothing reads."""

    name = "fallbacks"
    by_profile = True
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = dict.fromkeys(
        EMBEDDED, "nobody is told; what failed is in the session's `failures`"
    )

    def made(self) -> Made:
        misspelt: JSONObject = {"module": "tool-todo", "config": {"colour": "red"}}
        return Made(plan={"tools": [misspelt]})

    def prepare(self, stage: Stage) -> None:
        (stage.home / "agents").mkdir()
        (stage.home / "agents/broken.md").write_text("---\nmeta: [\n---\n")
        (stage.project / ".mcp.json").write_text('{"mcpServers": {}}')

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        said = [".config.colour", "'broken' cannot be used"]
        if not start.is_resumed:  # the files of a project are looked for once a session
            said.append(".mcp.json")
        for text in said:
            assert outcome.reported.count(text) == 1, (text, outcome.reported)


class Telemetry(Guard):
    """hooks-otel, with an endpoint that it cannot export to: the turn runs, and the person is told once."""

    name = "telemetry"
    calls: ClassVar[Calls] = (TALLY,)
    without: ClassVar[Reasons] = {"child-by-id": "the session that made it said so"}

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-otel"}]})

    def prepare(self, stage: Stage) -> None:
        # other tests of this process may have set up an SDK, which stays
        stage.patch.setattr(_export, "_has_sdk", lambda: False)
        stage.patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        stage.patch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        # a program that resumes a child, or a server, opens a session before and one after
        reopened = ("embedded-resumed-child", "served-session")
        sessions = 2 if start.name in reopened else 1
        reported = outcome.reported.count("OTEL_EXPORTER_OTLP_PROTOCOL")
        assert reported == sessions, outcome.reported
