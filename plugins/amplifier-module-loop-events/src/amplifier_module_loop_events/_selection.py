"""Which tool answers a call: the one that the model named, unless handlers say otherwise."""

from __future__ import annotations

import attrs

from amplifier_kit.selection import (
    DECISION_TOOL_RESOLUTION,
    TOOL_SELECTED,
    TOOL_SELECTING,
    ToolResolution,
    ToolSelected,
    ToolSelecting,
)
from amplifier_module_loop_events._votes import winning_vote
from amplifier_sdk import Turn
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.results import ToolResult

__all__ = ["SelectedCall", "select_tool"]


@attrs.frozen(kw_only=True)
class SelectedCall:
    """A call as it shall run, or the refusal that answers it."""

    call: ToolCall
    refusal: ToolResult | None = None


async def select_tool(turn: Turn, call: ToolCall, timeout: float) -> SelectedCall:
    """Let handlers vote for a tool, then deny or change it.

    Args:
        turn: the running turn.
        call: what the model asked for.
        timeout: seconds for each handler that votes.
    """
    names = list(turn.tools)
    asked = ToolResolution(
        tool=call.name,
        tool_input=call.arguments,
        tool_call_id=call.id,
        candidates=names,
    )
    vote = await winning_vote(
        turn.hooks, DECISION_TOOL_RESOLUTION, asked, names, timeout
    )
    if vote is None:
        name = call.name
    else:
        name = vote.choice
    if turn.hooks.has_handlers(TOOL_SELECTING):
        payload = ToolSelecting(
            tool=name, tool_input=call.arguments, tool_call_id=call.id, candidates=names
        )
        emission = await turn.hooks.emit(TOOL_SELECTING, payload)
        emission = await turn.host.process_hook_result(emission, TOOL_SELECTING)
        if emission.denied:
            refusal = ToolResult.failure(
                f"Denied by {emission.decided_by}: {emission.reason}", type="denied"
            )
            return SelectedCall(call=call, refusal=refusal)
        changed = emission.data["tool"]
        if isinstance(changed, str) and changed != name:
            # The reason and the score were those of another tool.
            name, vote = changed, None
    if turn.hooks.has_handlers(TOOL_SELECTED):
        selected = ToolSelected(tool=name, requested=call.name, tool_call_id=call.id)
        if vote is not None:
            selected["reason"], selected["score"] = vote.reason, vote.score
        await turn.hooks.emit(TOOL_SELECTED, selected)
    return SelectedCall(
        call=call if name == call.name else attrs.evolve(call, name=name)
    )
