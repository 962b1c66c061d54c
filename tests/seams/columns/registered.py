"""What a program registers on a session or asks of it, and what becomes of that below it."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import ClassVar

import anyio
import attrs

from amplifier import AmplifierSession
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.hookspecs import Config, amplifier_hook
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.redaction import REDACTOR
from amplifier_sdk.results import HookResult
from tests.seams.columns.guard import COMMANDS, TALLY, Calls, Guard, KeepsNotes, Reasons
from tests.seams.columns.storage import Redaction
from tests.seams.modules import SCRIPT, TILL, Call
from tests.seams.stage import Made, Outcome, Stage
from tests.seams.starts import Start

__all__ = [
    "Cancel",
    "Handler",
    "RegisteredCapability",
    "RegisteredPlugin",
    "RegisteredRedactor",
    "Swordfish",
]


class Handler(KeepsNotes):
    """A handler that a program registers on a session decides for all that come of it."""

    name = "registered-handler"
    without: ClassVar[Reasons] = dict.fromkeys(
        [*COMMANDS, "served-session"], "a program registers it"
    )
    reason = "not while I watch"

    def prepare(self, stage: Stage) -> None:
        def deny(event: str, data: Mapping[str, object]) -> HookResult | None:
            return (
                HookResult.deny(self.reason) if data["tool_name"] == "delete" else None
            )

        stage.equip = lambda session: _register(session, deny)


class RegisteredPlugin(Handler):
    """A plugin that a program registers with pluggy decides for all that come of the session."""

    name = "registered-plugin"
    without: ClassVar[Reasons] = {
        **Handler.without,
        "embedded-profile": "its session is open, which the registration refuses",
    }

    def prepare(self, stage: Stage) -> None:
        def register(session: AmplifierSession) -> None:
            session.coordinator.plugins.manager.register(Watching(self.reason))

        stage.equip = register


@attrs.frozen
class Watching:
    """A plugin whose handler denies deletions."""

    reason: str

    @amplifier_hook.impl
    async def watch(self, coordinator: Coordinator, config: Config) -> None:
        """Register the handler."""
        coordinator.hooks.register(TOOL_PRE, self.decide)

    def decide(self, event: str, data: Mapping[str, object]) -> HookResult | None:
        """Deny a deletion."""
        if data["tool_name"] == "delete":
            return HookResult.deny(self.reason)
        return None


class RegisteredRedactor(Redaction):
    """A redactor that a program registers on a session hides words in the logs of all that come of it."""

    name = "registered-redactor"
    without: ClassVar[Reasons] = {
        **Handler.without,
        "embedded-profile": "its redactor is the profile's",
    }
    calls: ClassVar[Calls] = (TALLY,)
    begin: ClassVar[Calls] = (TALLY,)
    secret = "swordfish"
    mark = "[word]"

    def made(self) -> Made:
        return Made(plan={"hooks": [{"module": "hooks-logging"}]})

    def prepare(self, stage: Stage) -> None:
        super().prepare(stage)
        stage.equip = lambda session: session.coordinator.register_capability(
            REDACTOR, Swordfish()
        )


class RegisteredCapability(Guard):
    """A capability that a program registers on a session is there in all that come of it."""

    name = "registered-capability"
    without: ClassVar[Reasons] = Handler.without
    calls: ClassVar[Calls] = (Call("till"),)

    def made(self) -> Made:
        return Made(plan={"tools": [{"module": "tool-till"}]})

    def prepare(self, stage: Stage) -> None:
        stage.equip = lambda session: session.coordinator.register_capability(
            TILL, object()
        )

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert "no till" not in outcome.ran

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        super().plays(stage, start, outcome)
        assert "till" in outcome.ran


class Cancel(Guard):
    """Ctrl-C, or `cancel` of a program's session: once the running step ends, nothing of the family starts one."""

    name = "cancel"
    calls: ClassVar[Calls] = (Call("pause"), TALLY)
    without: ClassVar[Reasons] = {
        "tool-invoke": "there is no step behind the first",
        "background-child": "it outlives the turn; /agents stop and the chat's end stop it",
        "mcp-agent": "Ctrl-C ends the server; a client cancels its request",
        "served-session": "Ctrl-C ends the server; a client cancels the turn",
    }

    def prepare(self, stage: Stage) -> None:
        async def interrupt() -> None:
            signal.raise_signal(signal.SIGINT)
            await anyio.wait_all_tasks_blocked()

        def equip(session: AmplifierSession) -> None:
            SCRIPT.meanwhile = session.cancel

        SCRIPT.meanwhile = interrupt
        stage.equip = equip

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert "tally" not in outcome.ran

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Assert that the model was not asked again: the request that made the call was the last one."""
        assert "pause" in outcome.ran
        assert not any(
            "paused" in result for asked in outcome.asked for result in asked.results
        )


class Swordfish:
    """A redactor that hides one word."""

    def redact_text(self, text: str, /) -> str:
        """Take the word out of a text."""
        return text.replace("swordfish", "[word]")

    def redact(self, value: JSONValue, /) -> JSONValue:
        """Take the word out."""
        hidden: JSONValue = json.loads(json.dumps(value).replace("swordfish", "[word]"))
        return hidden


def _register(session: AmplifierSession, deny: object) -> None:
    session.coordinator.hooks.register("tool:pre", deny)  # type: ignore[call-overload]
