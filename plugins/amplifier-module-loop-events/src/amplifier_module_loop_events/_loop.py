"""The loop itself; the duties of a turn are those of `amplifier_sdk.Loop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
import attrs

from amplifier_kit.selection import (
    DECISION_PROVIDER_RESOLUTION,
    DECISION_TOOL_RESOLUTION,
    ERROR_PROVIDER,
    ERROR_TOOL,
    TOOL_SELECTED,
    TOOL_SELECTING,
    ProviderFailed,
    ProviderResolution,
    ToolFailed,
)
from amplifier_module_loop_events._selection import select_tool, winning_vote
from amplifier_sdk import Coordinator, HookResult, Loop, Turn, orchestrator
from amplifier_sdk.bounds import seconds
from amplifier_sdk.chat import ChatResponse, ToolCall, ToolChoice
from amplifier_sdk.errors import LLMError
from amplifier_sdk.events import PLAN_END, PLAN_START, PlanEnd, PlanStart
from amplifier_sdk.loops import LoopConfig
from amplifier_sdk.loops.events import STEERING_INJECTED
from amplifier_sdk.results import ToolResult

__all__ = ["EventsConfig", "EventsLoop"]

EVENTS: Final = (
    DECISION_PROVIDER_RESOLUTION,
    DECISION_TOOL_RESOLUTION,
    ERROR_PROVIDER,
    ERROR_TOOL,
    STEERING_INJECTED,
    TOOL_SELECTED,
    TOOL_SELECTING,
)
PLAN: Final = "Before you begin: write a short plan of the steps that this takes. Use no tool yet."
PROCEED: Final = "Now carry out the plan."
NOT_YET: Final = ToolResult.failure(
    "Not run: this was the plan; call the tool when you carry it out", type="denied"
)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EventsConfig(LoopConfig):
    """The loop's settings.

    Args:
        decision_timeout: seconds that each handler of a `decision:*` event has; a later answer does not count.
        planning: let the model write a plan first, in a request of its own.
    """

    decision_timeout: float = attrs.field(default=1.0, validator=seconds)
    planning: bool = False


@orchestrator
class EventsLoop(Loop):
    """Asks whom handlers choose, runs the tools that handlers select, repeats."""

    name = "loop-events"
    takes_steering = True

    def __init__(self, config: EventsConfig, coordinator: Coordinator) -> None:
        self.config = config
        self._timeout = config.decision_timeout
        self._plans = config.planning
        coordinator.register_contributor(
            "observability.events", self.name, lambda: list(EVENTS)
        )

    async def run(self, turn: Turn) -> str:
        """Plan if configured, then alternate between the model and its tools until an answer needs none."""
        choice = self.first_choice(turn.tools)
        if self._plans:
            plan = await self._plan(turn)
            # A limit may be reached by the plan alone.
            if turn.is_over:
                return plan
        while True:
            await turn.take_steering()
            response = await self._complete(turn, choice)
            if not response.tool_calls:
                return response.text
            await self._run_tools(turn, response.tool_calls)
            # Only the first answer is forced; the rest of the turn is the model's.
            choice = None

    async def _plan(self, turn: Turn) -> str:
        """Let the model write its plan, and ask it to carry that out."""
        if turn.hooks.has_handlers(PLAN_START):
            await turn.hooks.emit(PLAN_START, PlanStart(prompt=turn.prompt))
        end = PlanEnd()
        try:
            await turn.host.process_hook_result(
                HookResult.inject(PLAN, ephemeral=True), PLAN_START, self.name
            )
            response = await self._complete(turn, "none")
            calls = response.tool_calls or ()  # of a model that calls all the same
            # Every call needs a result, or vendors refuse the next request.
            await turn.store_results(calls, [NOT_YET] * len(calls))
            end["plan"] = plan = response.text
        finally:
            if turn.hooks.has_handlers(PLAN_END):
                with (
                    anyio.CancelScope(shield=True),
                    anyio.move_on_after(turn.host.limits.cleanup_timeout),
                ):
                    await turn.hooks.emit(PLAN_END, end)
        if not turn.is_over:
            await turn.context.add_message({"role": "user", "content": PROCEED})
        return plan

    async def _complete(self, turn: Turn, choice: ToolChoice | None) -> ChatResponse:
        """Ask the provider that handlers vote for, else the turn's."""
        names = list(turn.providers)
        asked = ProviderResolution(candidates=names)
        vote = await winning_vote(
            turn.hooks, DECISION_PROVIDER_RESOLUTION, asked, names, self._timeout
        )
        try:
            return await turn.complete(
                provider=None if vote is None else vote.choice, tool_choice=choice
            )
        except LLMError as error:
            if turn.hooks.has_handlers(ERROR_PROVIDER):
                details = {"type": type(error).__name__, "message": str(error)}
                payload = ProviderFailed(
                    error=details, provider=error.provider, retryable=error.retryable
                )
                await turn.hooks.emit(ERROR_PROVIDER, payload)
            raise

    async def _run_tools(self, turn: Turn, calls: Sequence[ToolCall]) -> None:
        """Select a tool for each call, run what may run, and store the results as answers to the model's calls."""
        # One after the other: handlers vote in the order of the calls.
        selections = [await select_tool(turn, call, self._timeout) for call in calls]
        chosen = [
            selection.call for selection in selections if selection.refusal is None
        ]
        turn.calls_made += len(chosen)
        ran = iter(await turn.host.run_tools(chosen, turn.tools))
        # In the order of the calls, whatever ran first.
        results = [selection.refusal or next(ran) for selection in selections]
        await turn.store_results(calls, results)
        for selection, result in zip(selections, results, strict=True):
            await self._report_failure(turn, selection.call, result)

    async def _report_failure(
        self, turn: Turn, call: ToolCall, result: ToolResult
    ) -> None:
        if not result.success and turn.hooks.has_handlers(ERROR_TOOL):
            error = result.error or {"message": result.get_serialized_output()}
            await turn.hooks.emit(
                ERROR_TOOL,
                ToolFailed(tool=call.name, tool_call_id=call.id, error=error),
            )
