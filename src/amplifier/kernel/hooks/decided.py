"""What handlers decided, as `hook:decided` carries it for those who keep a log of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from amplifier.kernel.hooks.registrations import changes_of
from amplifier_sdk.decisions import SUPPRESSED, HookDecided, InjectedText
from amplifier_sdk.results import Decision, Emission

__all__ = ["decided_payloads"]


def decided_payloads(
    event: str,
    before: Mapping[str, object],
    emission: Emission,
    module_of: Callable[[object], str | None],
) -> Iterator[HookDecided]:
    """Yield the payloads of an event's decisions, in their order.

    Args:
        event: the event that was decided on.
        before: its data as the first handler saw them.
        emission: what the handlers decided.
        module_of: returns the module of a plugin.
    """
    data = dict(before)
    for decision in emission.decisions:
        changed = changes_of(decision.result, data)
        data.update(changed)
        payload = _payload(event, decision)
        if (module := module_of(decision.plugin)) is not None:
            payload["module"] = module
        if changed and decision.result.suppress_output:
            payload["changed"] = dict.fromkeys(changed, SUPPRESSED)
        elif changed:
            payload["changed"] = changed
        yield payload


def _payload(event: str, decision: Decision) -> HookDecided:
    result = decision.result
    payload = HookDecided(
        hook_event=str(event),
        handler=decision.handler,
        action=result.action,
        duration=decision.duration,
    )
    if result.reason:
        payload["reason"] = result.reason
    if result.action == "inject_context" and result.context_injection:
        content = result.context_injection
        if result.suppress_output:
            content = SUPPRESSED
        payload["injection"] = InjectedText(
            role=result.context_injection_role,
            content=content,
            ephemeral=result.ephemeral,
        )
    if result.action == "ask_user" and result.approval_prompt:
        payload["question"] = result.approval_prompt
    if result.user_message:
        payload["message"] = result.user_message
    return payload
