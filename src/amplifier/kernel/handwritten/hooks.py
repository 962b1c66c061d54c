"""The hook registry as a loop written by hand receives it: what it announces of a call is reported once.

Requests to providers are the same: what the loop announces is decided on there and then, and what was reported of an
answer or a failure is not reported again.

Such a loop emits `tool:pre` and `tool:post` itself and then calls the tool it received, which owes the same
events. Here the loop's own `tool:pre` is carried out at once, the question to the person included, and noted; the
tool's `execute` takes the note instead of asking again. The loop's own `tool:post` or `tool:error` of a call that
ended so is answered without a second report. A call without a note is decided on as any other.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from random import getrandbits
from typing import TYPE_CHECKING, Final, cast

import attrs

from amplifier.kernel.handwritten.announcements import AnnouncedCall, Announcements
from amplifier.kernel.turn.arguments import copied
from amplifier.kernel.turn.decisions import SettledEmission
from amplifier.kernel.turn.registry import HookRegistry
from amplifier.kernel.turn.tool_calls import ToolRunner, tool_info
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.events import (
    PROMPT_SUBMIT,
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import Decision, Emission, HookResult, ToolResult

if TYPE_CHECKING:
    from amplifier.kernel.handwritten.prompts import PromptDelivery
    from amplifier_sdk.contracts import Tool

__all__ = ["LoopHooks"]

_PROVIDER_EVENTS: Final = frozenset(
    {str(PROVIDER_REQUEST), str(PROVIDER_RESPONSE), str(PROVIDER_ERROR)}
)


class LoopHooks(HookRegistry):
    """A session's registry for a loop written by hand; it shares all that the registry has."""

    __slots__ = ("_announcements", "_delivery", "_registry", "_runner", "_tools")

    def __init__(
        self,
        registry: HookRegistry,
        runner: ToolRunner,
        announcements: Announcements,
        tools: Mapping[str, Tool],
        delivery: PromptDelivery | None = None,
    ) -> None:
        self._delivery = delivery
        self._registry = registry
        self._runner = runner
        self._announcements = announcements
        self._tools = tools
        # a handler that is registered on either is registered on both
        self.__dict__ = registry.__dict__

    def emit(
        self, event: str, data: Mapping[str, object] | None, /
    ) -> Coroutine[object, object, Emission]:
        """Emit an event; one of a tool call that this loop runs itself is reported once and carried out."""
        if data and event == TOOL_PRE and self.has_handlers(event):
            tool, given = (
                self._tools.get(str(data.get("tool_name"))),
                data.get("tool_input"),
            )
            if tool is not None and isinstance(given, Mapping):
                return self._announce(
                    data, tool, cast("Mapping[str, JSONValue]", given)
                )
        elif data and event in (TOOL_POST, TOOL_ERROR):
            return self._end(event, data)
        elif data and event in _PROVIDER_EVENTS:
            return self._emit_of_provider(event, data)
        elif data and event == PROMPT_SUBMIT and self._delivery is not None:
            return self._submit(data, self._delivery)
        return self._registry.emit(event, data)

    async def _submit(
        self, data: Mapping[str, object], delivery: PromptDelivery
    ) -> Emission:
        """Show handlers the prompt's media besides its text, and note what they leave of them."""
        emission = await self._registry.emit(PROMPT_SUBMIT, delivery.announced(data))
        delivery.note(emission)
        return emission

    async def _emit_of_provider(
        self, event: str, data: Mapping[str, object]
    ) -> Emission:
        """Let handlers decide on a request and note it; what was reported of its end is not reported again."""
        if event == PROVIDER_RESPONSE:
            decisions = self._announcements.take_response(data)
            if decisions is not None:
                return SettledEmission(dict(data), decisions)
        if event == PROVIDER_ERROR and self._announcements.take_failure(data):
            return SettledEmission(dict(data), ())
        emission = await self._registry.emit(event, data)
        if event != PROVIDER_REQUEST:
            return emission
        # at once, since a loop that asks nobody must not get past a question
        decided = await self._runner.decisions.carry_out(emission, event)
        self._announcements.note_request(data.get("provider"), decided)
        return SettledEmission(emission.data, decided.decisions)

    async def _end(self, event: str, data: Mapping[str, object]) -> Emission:
        """Return what was decided at the end of a call, or let handlers decide where it was not reported."""
        decisions = self._announcements.take_end(data)
        if decisions is not None:
            return SettledEmission(dict(data), decisions)
        return await self._registry.emit(event, data)

    async def _announce(
        self, data: Mapping[str, object], tool: Tool, given: Mapping[str, JSONValue]
    ) -> Emission:
        """Let handlers decide on a call, carry that out and note it."""
        # two copies: handlers see one, and what they may do to it changes no other
        asked, shown = copied(given), copied(given)
        call_id = data.get("tool_call_id")
        # taken in any case: the call is no other's
        adopted = self._announcements.adopt(str(data["tool_name"]), asked)
        if not isinstance(call_id, str) or not call_id:
            call_id = adopted or f"call_{getrandbits(64):016x}"
        call = ToolCall(
            id=call_id,
            name=str(data["tool_name"]),
            arguments=asked,
            problem=self._runner.services.schemas.problem(tool, asked),
        )
        replay = self._runner.log.replay
        if replay is not None and replay.result(call, tool) is not None:
            # it does not run any more: there is nothing to decide on
            settled = attrs.evolve(call, problem=None)
            self._announcements.announce(
                AnnouncedCall(settled, asked, given, given, None)
            )
            return SettledEmission({**data, "tool_call_id": call.id}, ())
        own = {
            "tool_call_id": call.id,
            "tool_input": shown,
            "tool_obj": tool_info(tool),
        }
        emission = await self._registry.emit(
            TOOL_PRE, {"parallel_group_id": None, **data, **own}
        )
        changes = [
            decision
            for decision in emission.decisions
            if decision.result.action == "modify"
        ]
        arguments, refusal, decided = await self._runner.settle(
            call, tool, shown, asked, emission
        )
        left: Sequence[Decision] = [*changes, *decided.decisions]
        if refusal is not None:
            arguments, left = asked, _denial(decided, refusal)
        passed = given
        if arguments is not asked:
            passed = copied(arguments)
        decided_call = attrs.evolve(call, arguments=arguments, problem=None)
        self._announcements.announce(
            AnnouncedCall(decided_call, asked, given, passed, refusal)
        )
        return SettledEmission({**emission.data, "tool_input": passed}, left)


def _denial(decided: Emission, refusal: ToolResult) -> Sequence[Decision]:
    """Return the decision that a refused call was denied by."""
    if decided.denied:
        return decided.decisions
    return [
        Decision(
            "arguments",
            HookResult.deny(refusal.get_serialized_output().removeprefix("Error: ")),
        )
    ]
