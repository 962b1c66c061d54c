"""The hook registry as a loop written by hand receives it: what it announces of a call is told once.

Such a loop emits `tool:pre` and `tool:post` itself and then calls the tool it received, which owes the same
events. Here the loop's own `tool:pre` is carried out at once, the question to the person included, and noted; the
tool's `execute` takes the note instead of asking again. The loop's own `tool:post` or `tool:error` of a call that
ended so is answered without telling anybody twice. A call without a note is judged as any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import getrandbits
from typing import TYPE_CHECKING, cast

import attrs

from amplifier.kernel.calls.loopcalls import Announced, LoopCalls, SettledEmission
from amplifier.kernel.calls.tool import copied, told_of
from amplifier.kernel.hooks.registry import HookRegistry
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.events import TOOL_ERROR, TOOL_POST, TOOL_PRE
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import Decision, Emission, HookResult, ToolResult

if TYPE_CHECKING:
    from amplifier.kernel.coordinator import ModuleCoordinator
    from amplifier_sdk.contracts import Tool

__all__ = ["LoopHooks"]


class LoopHooks(HookRegistry):
    """A session's registry for a loop written by hand; it shares all that the registry has."""

    __slots__ = ("_calls", "_coordinator", "_registry")

    def __init__(self, coordinator: ModuleCoordinator, calls: LoopCalls) -> None:
        self._registry = coordinator.hooks
        self._coordinator = coordinator
        self._calls = calls
        self.__dict__ = self._registry.__dict__  # a handler that is registered on either is registered on both

    async def emit(self, event: str, data: Mapping[str, object] | None, /) -> Emission:
        """Emit an event; one of a tool call that this loop runs itself is told once and carried out."""
        if data and event == TOOL_PRE and self.has_handlers(event):
            tool, given = self._coordinator.tools.get(str(data.get("tool_name"))), data.get("tool_input")
            if tool is not None and isinstance(given, Mapping):
                return await self._announce(data, tool, cast("Mapping[str, JSONValue]", given))
        elif data and event in (TOOL_POST, TOOL_ERROR):
            decisions = self._calls.take_end(data)
            if decisions is not None:
                return SettledEmission(dict(data), decisions)
        return await self._registry.emit(event, data)

    async def _announce(self, data: Mapping[str, object], tool: Tool, given: Mapping[str, JSONValue]) -> Emission:
        """Let handlers decide on a call, carry that out and note it."""
        host = self._coordinator.host
        asked, shown = copied(given), copied(given)
        call_id = data.get("tool_call_id")
        call = ToolCall(
            id=call_id if isinstance(call_id, str) and call_id else f"call_{getrandbits(64):016x}",
            name=str(data["tool_name"]),
            arguments=asked,
            problem=host.problem(tool, asked),
        )
        own = {"tool_call_id": call.id, "tool_input": shown, "tool_obj": told_of(tool)}
        emission = await self._registry.emit(TOOL_PRE, {"parallel_group_id": None, **data, **own})
        changes = [decision for decision in emission.decisions if decision.result.action == "modify"]
        arguments, refusal, decided = await host.settle(call, tool, shown, asked, emission)
        left: Sequence[Decision] = [*changes, *decided.decisions]
        if refusal is not None:
            arguments, left = asked, _denial(decided, refusal)
        passed = given if arguments is asked else copied(arguments)
        decided_call = attrs.evolve(call, arguments=arguments, problem=None)
        self._calls.announce(Announced(decided_call, asked, given, passed, refusal))
        return SettledEmission({**emission.data, "tool_input": passed}, left)


def _denial(decided: Emission, refusal: ToolResult) -> Sequence[Decision]:
    """Return the decision that a refused call was denied by."""
    if decided.denied:
        return decided.decisions
    return [Decision("arguments", HookResult.deny(refusal.get_serialized_output().removeprefix("Error: ")))]
