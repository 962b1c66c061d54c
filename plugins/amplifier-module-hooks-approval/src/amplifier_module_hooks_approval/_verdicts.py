"""The one decision about a call: of the configured rules, and of what its tool says."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from amplifier_kit.rules import Call
from amplifier_kit.shell.decisions import Decision
from amplifier_module_hooks_approval.config import Policy
from amplifier_sdk.assessments import Assessment

__all__ = ["Verdict", "judge"]


@attrs.frozen(kw_only=True)
class Verdict:
    """What becomes of a call, and why.

    `by_state` says that the session wants it asked about each time, `by_rule` that a configured rule asks: no answer
    about a kind of calls is an answer to it.
    """

    decision: Decision
    reason: str
    by_state: bool = False
    by_rule: bool = False


def judge(call: Call, assessment: Assessment, policy: Policy, wanted: Collection[object]) -> Verdict:
    """Decide about a call.

    A denial of either side counts. A configured rule that allows or asks is more exact than the tool's own rules, but
    never lifts a firm question; what no configured rule is about is as the tool says, and else as the policy has it.

    Args:
        call: the call.
        assessment: what its tool says of it.
        policy: the configured rules.
        wanted: the tools that the session's state wants asked about.
    """
    judged, said = policy.rules.judge(call), assessment.decision
    if said == "deny":
        return Verdict(decision="deny", reason=assessment.reason)
    if judged.decision == "deny":
        return Verdict(decision="deny", reason=judged.reason)
    is_configured = judged.rule is not None and judged.rule < policy.configured
    if said == "ask" and judged.decision == "allow" and not (is_configured and not assessment.is_firm):
        return Verdict(decision="ask", reason=assessment.reason)
    if said is not None and judged.rule is None and judged.decision == "ask":
        return _stated(said, assessment.reason, call, wanted)
    if judged.decision == "ask" and judged.rule is not None:
        return Verdict(decision="ask", reason=judged.reason, by_rule=True)
    return _stated(judged.decision, judged.reason, call, wanted)


def _stated(decision: Decision, reason: str, call: Call, wanted: Collection[object]) -> Verdict:
    if decision == "allow" and call.tool_name in wanted:
        return Verdict(decision="ask", reason="the session's state wants it asked about", by_state=True)
    return Verdict(decision=decision, reason=reason or "its tool lets it run")
