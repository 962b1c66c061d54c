"""What a session itself makes of a tool call that no handler answered for.

A tool's own rules hold whatever is mounted: what they deny is denied, and what they ask about needs an approval, a
handler's or a person's. A session that asks before changes wants one for every call that does more than read.
"""

from __future__ import annotations

import anyio

from amplifier.kernel.hooks.decisions import DecisionProcessor
from amplifier.kernel.hooks.questions import (
    ASKS_BEFORE_CHANGES,
    UNASSESSED,
    ask_because,
)
from amplifier.kernel.plans.plan import SessionSettings
from amplifier_sdk.assessments import Assessment, assess, assessor_of
from amplifier_sdk.contracts import Tool
from amplifier_sdk.effects import ONLY_READS, effects_of
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import Decision, Emission, HookResult

__all__ = ["needs_consent", "with_consent"]


def needs_consent(tool: Tool, settings: SessionSettings) -> bool:
    """Whether a call of the tool may need more than the handlers' decisions."""
    return settings.ask_before_changes or assessor_of(tool) is not None


async def with_consent(
    tool: Tool,
    name: str,
    arguments: JSONObject,
    emission: Emission,
    decisions: DecisionProcessor,
) -> tuple[Emission, str | None]:
    """Add what the session decides of a call to what handlers did.

    Args:
        tool: the tool.
        name: what it is mounted under.
        arguments: what it will run with, in a copy.
        emission: what handlers decided; none denied.
        decisions: the session's settings, and what whoever opened it accepts.

    Returns:
        All decisions, and what keeps the call from working at all, about which nobody is asked.
    """
    limit = decisions.settings.limits.hook_timeout
    assessment: Assessment | None = None
    # a tool's rules are foreign code; one that hangs is asked about, never allowed
    with anyio.move_on_after(limit) as scope:
        assessment = await assess(tool, arguments)
    if scope.cancelled_caught:
        assessment = Assessment(
            decision="ask",
            reason=UNASSESSED.format(limit),
        )
    if (
        assessment is not None
        and assessment.decision != "deny"
        and assessment.problem is not None
    ):
        return _with(
            emission, name, HookResult.deny(assessment.problem)
        ), assessment.problem
    return _with(
        emission, name, _own_decision(tool, name, assessment, emission, decisions)
    ), None


def _own_decision(
    tool: Tool,
    name: str,
    assessment: Assessment | None,
    emission: Emission,
    decisions: DecisionProcessor,
) -> HookResult | None:
    """Return the tool's denial, or the question that nobody answered or asks; `None` where nothing is wanting."""
    said = assessment or Assessment()
    if said.decision == "deny":
        return HookResult.deny(said.reason)
    is_approved = any(map(decisions.approves, emission.decisions))
    if (
        is_approved
        or emission.question is not None
        or _is_accepted(said, decisions.accepted())
    ):
        return None
    if said.decision == "ask":
        return ask_because(said.reason, said.details)
    if said.decision == "allow" or not decisions.settings.ask_before_changes:
        return None
    if said.effects is None:
        effects = effects_of(tool, name=name)
    else:
        effects = frozenset(said.effects)
    if effects is not None and effects <= ONLY_READS:
        return None
    return ask_because(ASKS_BEFORE_CHANGES, said.details)


def _is_accepted(assessment: Assessment, accepted: object) -> bool:
    """Whether the call is of a kind that whoever opened the session accepts."""
    return isinstance(accepted, frozenset) and any(
        each.key in accepted for each in assessment.coverages
    )


def _with(emission: Emission, name: str, result: HookResult | None) -> Emission:
    if result is None:
        return emission
    return Emission(emission.data, (*emission.decisions, Decision(name, result)))
