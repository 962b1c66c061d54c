"""What handlers decided in one turn: carried out at once, but for what waits for the next request."""

from __future__ import annotations

import attrs

from amplifier.kernel.hooks.decisions import DecisionProcessor, InjectionCount
from amplifier_sdk.results import ContextInjection, Emission, HookResult

__all__ = ["SettledEmission", "TurnDecisions"]


@attrs.define(eq=False)
class SettledEmission(Emission):
    """An emission whose decisions were carried out; carrying it out again does nothing.

    It still shows a denial, what handlers changed, and the ephemeral injections for a loop that adds them itself.
    """


@attrs.define(eq=False)
class TurnDecisions:
    """Carries out what handlers decide in one turn; `pending` are the injections for its next request."""

    processor: DecisionProcessor
    pending: list[ContextInjection] = attrs.field(factory=list)
    injected: InjectionCount = attrs.field(factory=InjectionCount)

    async def carry_out(
        self, result: Emission | HookResult, event: str, hook_name: str = "unknown", /
    ) -> Emission:
        """Carry out what handlers decided; nothing is injected for an operation that was denied.

        Args:
            result: their decisions.
            event: what they decided on.
            hook_name: who decided, where the result does not say it.
        """
        if isinstance(result, Emission) and (
            not result.decisions or isinstance(result, SettledEmission)
        ):
            return result
        emission = await self.processor.process(
            result, event, hook_name, injected=self.injected
        )
        if not emission.denied:
            self.pending.extend(emission.injections)
        return emission

    def take_pending(self) -> list[ContextInjection]:
        """Return the injections that wait for a request, and forget them."""
        pending, self.pending = self.pending, []
        return pending
