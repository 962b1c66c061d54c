"""The one decision about a call: of the configured rules, and of what its tool says."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from amplifier_kit.rules import RuledCall
from amplifier_kit.shell.decisions import Decision
from amplifier_module_hooks_approval.config import Policy
from amplifier_sdk.assessments import Assessment

__all__ = ["ApprovalDecision", "evaluate"]


@attrs.frozen(kw_only=True)
class ApprovalDecision:
    """What becomes of a call, and why.

    `by_state` says that the session wants it asked about each time, `by_rule` that a configured rule asks: no answer
    about a kind of calls is an answer to it.
    """

    decision: Decision
    reason: str
    by_state: bool = False
    by_rule: bool = False


def evaluate(
    call: RuledCall, assessment: Assessment, policy: Policy, wanted: Collection[object]
) -> ApprovalDecision:
    """Decide about a call.

    A denial of either side counts. A configured rule that allows or asks is more exact than the tool's own rules, but
    never lifts a firm question; what no configured rule is about is as the tool says, and else as the policy has it.

    Args:
        call: the call.
        assessment: what its tool says of it.
        policy: the configured rules.
        wanted: the tools that the session's state wants asked about.
    """
    evaluated, said = policy.rules.evaluate(call), assessment.decision
    # The tool's own denial first: it knows what its arguments mean.
    if said == "deny":
        return ApprovalDecision(decision="deny", reason=assessment.reason)
    if evaluated.decision == "deny":
        return ApprovalDecision(decision="deny", reason=evaluated.reason)
    # Rules of the configuration come first in the set, before those that are derived
    # from options.
    is_configured = evaluated.rule is not None and evaluated.rule < policy.configured
    if (
        said == "ask"
        and evaluated.decision == "allow"
        and not (is_configured and not assessment.is_firm)
    ):
        return ApprovalDecision(decision="ask", reason=assessment.reason)
    if said is not None and evaluated.rule is None and evaluated.decision == "ask":
        return _stated(said, assessment.reason, call, wanted)
    if evaluated.decision == "ask" and evaluated.rule is not None:
        return ApprovalDecision(decision="ask", reason=evaluated.reason, by_rule=True)
    return _stated(evaluated.decision, evaluated.reason, call, wanted)


def _stated(
    decision: Decision, reason: str, call: RuledCall, wanted: Collection[object]
) -> ApprovalDecision:
    if decision == "allow" and call.tool_name in wanted:
        return ApprovalDecision(
            decision="ask",
            reason="the session's state wants it asked about",
            by_state=True,
        )
    return ApprovalDecision(decision=decision, reason=reason or "its tool lets it run")
