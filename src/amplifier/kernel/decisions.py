"""Carrying out what handlers decided: injections into the context, questions to the person, messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import anyio
import attrs

from amplifier.kernel.clock import timestamp
from amplifier.kernel.hooks import HookRegistry
from amplifier.kernel.plan import SessionSettings
from amplifier.kernel.reports import report
from amplifier_sdk.contracts import ApprovalSystem, ContextManager, DisplaySystem
from amplifier_sdk.errors import ApprovalTimeoutError
from amplifier_sdk.events import (
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    APPROVAL_REQUIRED,
    ApprovalDenied,
    ApprovalGranted,
    ApprovalRequired,
)
from amplifier_sdk.results import ContextInjection, Decision, Emission, HookResult

__all__ = ["DecisionProcessor"]

ALLOWING: Final = frozenset({"allow", "allow once", "allow always"})
"""The answers that allow an operation, in any case; every other answer denies it."""

CHARACTERS_PER_TOKEN: Final = 4
_UNSAFE: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]"
"""What an injection must not carry: a pattern, compiled with the first one, since that takes 4 ms."""


@attrs.define(eq=False)
class DecisionProcessor:
    """Does what an emission asks for; one per session.

    `context` is asked at each use, since modules and applications may replace what is mounted.
    """

    hooks: HookRegistry
    settings: SessionSettings = SessionSettings()
    context: Callable[[], ContextManager | None] = lambda: None
    approval: ApprovalSystem | None = None
    display: DisplaySystem | None = None
    _tokens_injected: int = 0
    _asking: anyio.Lock = attrs.field(factory=anyio.Lock)

    def reset_turn(self) -> None:
        """Start counting the turn's injections anew."""
        self._tokens_injected = 0

    async def process(self, result: Emission | HookResult, event: str, hook_name: str = "unknown") -> Emission:
        """Show the messages, store the lasting injections, ask the question.

        What is returned keeps the denial and the ephemeral injections; the rest is done.

        Raises:
            ValueError: an injection is larger than the session's limit; nothing of it was stored.
        """
        emission = _as_emission(result, hook_name)
        if not emission.decisions:
            return emission
        self._show(emission)
        if emission.denied:
            return emission
        question = emission.question
        if question is not None:
            refusal = await self._ask(question)
            if refusal is not None:
                return Emission(emission.data, (Decision("approval", refusal),))
        await self._inject(emission.injections, event)
        left = [d for d in emission.decisions if d.result.action == "inject_context" and d.result.ephemeral]
        return Emission(emission.data, left)

    def _show(self, emission: Emission) -> None:
        for message in emission.user_messages:
            if self.display is None:
                continue
            try:
                self.display.show_message(message.text, message.level, f"hook:{message.source}")
            except Exception as error:  # foreign code
                report("display.failed", error, source=message.source)

    async def _inject(self, injections: Sequence[ContextInjection], event: str) -> None:
        limit = self.settings.injection_size_limit
        for injection in injections:
            if limit is not None and len(injection.content) > limit:
                raise ValueError(
                    f"Hook {injection.hook_name!r} injects {len(injection.content)} characters on {event};"
                    f" session.injection_size_limit is {limit}"
                )
        context = self.context()
        for injection in injections:
            self._charge(injection, event)
            if not injection.ephemeral and context is not None:
                await context.add_message(
                    {
                        "role": injection.role,
                        "content": re.sub(_UNSAFE, "", injection.content),
                        "metadata": {
                            "source": "hook",
                            "hook_name": injection.hook_name,
                            "event": str(event),
                            "timestamp": timestamp(),
                        },
                    }
                )

    def _charge(self, injection: ContextInjection, event: str) -> None:
        budget = self.settings.injection_budget_per_turn
        self._tokens_injected += len(injection.content) // CHARACTERS_PER_TOKEN
        if budget is not None and self._tokens_injected > budget:
            report(
                "injection.over_budget",
                hook=injection.hook_name,
                hook_event=str(event),
                tokens=self._tokens_injected,
                budget=budget,
            )

    async def _ask(self, question: HookResult) -> HookResult | None:
        """Ask the person; return a denial, or `None` when they allow it. One question at a time."""
        prompt = question.approval_prompt or "Allow this operation?"
        if self.approval is None:
            return await self._refuse(prompt, "No approval system is available, so the operation is denied")
        options = question.approval_options or ("Allow", "Deny")
        await self.hooks.emit(APPROVAL_REQUIRED, ApprovalRequired(prompt=prompt, options=options))
        try:
            async with self._asking:
                answer = await self.approval.request_approval(
                    prompt, list(options), question.approval_timeout, question.approval_default
                )
        except ApprovalTimeoutError:
            if question.approval_default == "allow":
                await self._grant(prompt, "nobody answered in time; the default allows it")
                return None
            return await self._refuse(prompt, f"Approval timeout after {question.approval_timeout:g} s: {prompt}")
        except Exception as error:  # foreign code
            report("approval.failed", error, prompt=prompt)
            return await self._refuse(prompt, f"The approval system failed: {type(error).__name__}: {error}")
        if str(answer).strip().lower() in ALLOWING:
            await self._grant(prompt, answer)
            return None
        return await self._refuse(prompt, f"User denied: {prompt:.200}")

    async def _grant(self, prompt: str, reason: str) -> None:
        await self.hooks.emit(APPROVAL_GRANTED, ApprovalGranted(prompt=prompt, reason=reason))

    async def _refuse(self, prompt: str, reason: str) -> HookResult:
        await self.hooks.emit(APPROVAL_DENIED, ApprovalDenied(prompt=prompt, reason=reason))
        return HookResult.deny(reason)


def _as_emission(result: Emission | HookResult, hook_name: str) -> Emission:
    if isinstance(result, Emission):
        return result
    return Emission(dict(result.data or {}), (Decision(hook_name, result),))
