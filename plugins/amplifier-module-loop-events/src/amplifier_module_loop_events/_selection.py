"""Which tool answers a call: the one that the model named, unless handlers vote otherwise.

A handler answers with `data` of the form `{"choice": NAME, "score": NUMBER, "reason": TEXT}`. The highest score
wins. What would be taken without any vote has the score 0: a vote must be above it, so that a handler may also
vote against a name by a score below. Of equal scores the first counts, in the handlers' order. An answer of
another form, for a name that is no candidate, or too late, is no vote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import attrs

from amplifier_kit.selection import (
    DECISION_TOOL_RESOLUTION,
    TOOL_SELECTED,
    TOOL_SELECTING,
    ToolResolution,
    ToolSelected,
    ToolSelecting,
)
from amplifier_sdk import Turn
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.results import ToolResult

__all__ = ["SelectedCall", "Vote", "select_tool", "winning_vote"]


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
    name = call.name
    if vote is not None:
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


@attrs.frozen(kw_only=True)
class Vote:
    """One handler's answer."""

    choice: str
    score: float
    reason: str = ""


async def winning_vote(
    hooks: Hooks,
    event: str,
    data: Mapping[str, object],
    candidates: Sequence[str],
    timeout: float,
) -> Vote | None:
    """Ask the handlers of an event, and return the vote that wins, or `None`.

    Args:
        hooks: the registry.
        event: what the handlers are asked.
        data: what they see.
        candidates: the names that may be chosen.
        timeout: seconds for each handler.
    """
    if not hooks.has_handlers(event):
        return None
    best: Vote | None = None
    for answer in await hooks.emit_and_collect(event, data, timeout):
        vote = _read(answer, candidates)
        if vote is not None and vote.score > (0.0 if best is None else best.score):
            best = vote
    return best


def _read(answer: Mapping[str, object], candidates: Sequence[str]) -> Vote | None:
    choice = answer.get("choice")
    score = answer.get("score", 1.0)
    reason = answer.get("reason", "")
    if not isinstance(choice, str) or choice not in candidates:
        return None
    if (
        isinstance(score, bool)
        or not isinstance(score, (int, float))
        # Infinity would win over every reason, and NaN compares as nothing.
        or not isfinite(score)
    ):
        return None
    return Vote(choice=choice, score=float(score), reason=str(reason))
