"""What the calls of a session's turns share: its services, and the record of the running turn."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amplifier.kernel.budgets import Spending
from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.decisions import DecisionProcessor
from amplifier.kernel.hooks import HookRegistry
from amplifier.kernel.turnstream import TurnStream
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.contracts import Tool
from amplifier_sdk.journal import Journal
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.results import ContextInjection, Emission, HookResult, ToolResult

__all__ = ["HostState"]


@attrs.define(eq=False)
class HostState:
    """A session's services and the running turn's record.

    `stream` is set while somebody reads the turn, `journal` while an application offers one. `written` is
    the text of the turn, of which the first `whole` pieces belong to finished answers; `iteration` counts
    the provider calls from 0; `finish_reason` is why the last answer ended; `finished` holds the results of
    calls by id; `pending` the injections for the next request; `schemas` the compiled schemas by tool.
    """

    hooks: HookRegistry
    session_id: str = "unknown"
    limits: Limits = Limits()
    cancellation: CancellationToken = attrs.field(factory=CancellationToken)
    decisions: DecisionProcessor = attrs.field(
        default=attrs.Factory(lambda self: DecisionProcessor(self.hooks), takes_self=True)
    )
    journal: Journal | None = None
    stream: TurnStream | None = None
    spending: Spending = attrs.field(factory=Spending)
    written: list[str] = attrs.field(factory=list)
    finished: dict[str, ToolResult] = attrs.field(factory=dict)
    whole: int = 0
    iteration: int | None = None
    finish_reason: str | None = None
    pending: list[ContextInjection] = attrs.field(factory=list)
    schemas: dict[int, tuple[Tool, Mapping[str, JSONValue], ArgumentSchema]] = attrs.field(factory=dict)

    def begin_call(self, iteration: int) -> None:
        """Note which provider call of the turn begins."""
        self.iteration = iteration

    def end_answer(self, finish_reason: str | None) -> None:
        """Note that what was written so far belongs to answers that ended, and why the last one did."""
        self.whole = len(self.written)
        self.finish_reason = finish_reason

    def take_pending(self) -> list[ContextInjection]:
        """Return the injections that wait for a request, and forget them."""
        pending, self.pending = self.pending, []
        return pending

    def begin_turn(self) -> None:
        """Forget what the turn before left."""
        self.spending = Spending()
        self.written.clear()
        self.whole = 0
        self.iteration = None
        self.finish_reason = None
        self.finished.clear()
        self.pending.clear()
        self.decisions.reset_turn()

    async def process_hook_result(
        self, result: Emission | HookResult, event: str, hook_name: str = "unknown", /
    ) -> Emission:
        """Carry out what handlers decided; ephemeral injections wait for the next request.

        Nothing is injected for an operation that was denied.
        """
        if isinstance(result, Emission) and not result.decisions:
            return result
        emission = await self.decisions.process(result, event, hook_name)
        if not emission.denied:
            self.pending.extend(emission.injections)
        return emission

    @property
    def text(self) -> str:
        """What the model wrote in this turn, as far as it streamed."""
        return "".join(self.written)

    @property
    def unfinished_text(self) -> str:
        """What it wrote of an answer that never became whole."""
        return "".join(self.written[self.whole :])
