"""What the calls of a session's turns share: its services, and the record of the running turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from amplifier.kernel.budgets.spending import Spending
from amplifier.kernel.calls.stream import TurnStream
from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.hooks.decisions import DecisionProcessor
from amplifier.kernel.hooks.registry import HookRegistry
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.chat import ChatResponse, Degradation
from amplifier_sdk.contracts import Tool
from amplifier_sdk.errors import BudgetExceededError
from amplifier_sdk.journal import Journal
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.results import ContextInjection, Emission, HookResult, ToolResult

if TYPE_CHECKING:
    from anyio import CancelScope

    from amplifier.kernel.budgets.accounts import Account, Reached
    from amplifier.kernel.calls.loopcalls import LoopCalls
    from amplifier.kernel.calls.routes import Route

__all__ = ["NO_METADATA", "HostState"]

NO_METADATA: Final[Mapping[str, JSONValue]] = {}
LAST_PART: Final = 0.1
"""The part of a turn's `wall_time` that is kept for its last answer."""


@attrs.define(eq=False, repr=False)
class HostState:
    """A session's services and the running turn's record.

    `stream` is set while somebody reads the turn, `journal` while an application offers one. `written` is
    the text of the turn, of which the first `whole` pieces belong to finished answers; `iteration` counts
    the provider calls from 0; `finish_reason` is why the last answer ended; `finished` holds the results of
    calls by id; `pending` the injections for the next request; `schemas` the compiled schemas by tool.

    `scope` has the turn's deadline and `account` its budget, where it has one; `reached` is the limit that was
    reached and `wrapped_up` says that the last answer was given; `delegated` is what children spent,
    `spent_before` what the session had spent when the turn began,
    `route` whom a child asks, and `loop_calls` the calls that a loop written by hand announces itself.

    `metadata` is what the application gave the turn, `was_shown` whether anybody saw a part of the last
    request's answer, and `steering` what was typed while the agent worked and waits for a loop to take it.
    `degradations` say in what the turn's answers are not what was asked for.
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
    scope: CancelScope | None = None
    account: Account | None = None
    delegated: Spending | None = None
    spent_before: Spending = attrs.field(factory=Spending)
    reached: Reached | None = None
    wrapped_up: bool = False
    route: Route | None = None
    loop_calls: LoopCalls | None = None
    metadata: Mapping[str, JSONValue] = NO_METADATA
    was_shown: bool = False
    degradations: list[Degradation] = attrs.field(factory=list)
    steering: list[str] = attrs.field(factory=list)

    def end_turn(self) -> None:
        """Let go of what only a running turn needs: its scope holds the scopes around it, and so the caller's."""
        self.scope = None
        self.finished.clear()

    def begin_turn(self) -> None:
        """Forget what the turn before left."""
        self.spending = Spending()
        self.written.clear()
        self.whole = 0
        self.iteration = None
        self.finish_reason = None
        self.reached = None
        self.delegated = None
        self.wrapped_up = False
        self.was_shown = False
        self.degradations.clear()
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
        if self.loop_calls is not None and (settled := self.loop_calls.settled(result)) is not None:
            return settled
        emission = await self.decisions.process(result, event, hook_name)
        if not emission.denied:
            self.pending.extend(emission.injections)
        return emission

    def begin_call(self, iteration: int) -> Reached | None:
        """Note which provider call begins; return the limit that makes its answer the last one, if there is one."""
        self.iteration = iteration
        spent, limits = self.spending, self.limits
        if spent.provider_calls + 1 >= limits.iterations:
            return "iterations", limits.iterations
        if spent.tool_calls >= limits.tool_calls:
            return "tool_calls", limits.tool_calls
        if self.account is not None and (reached := self.account.reached):
            return reached
        if not spent.provider_calls or self.scope is None:  # a turn's first call needs no look at the clock
            return None
        is_late = anyio.current_time() >= self.scope.deadline - limits.wall_time * LAST_PART
        return ("wall_time", f"{limits.wall_time:g} s") if is_late else None

    def take_pending(self) -> list[ContextInjection]:
        """Return the injections that wait for a request, and forget them."""
        pending, self.pending = self.pending, []
        return pending

    def hide(self) -> None:
        """Note that a request begins, of whose answer nobody has seen anything."""
        self.was_shown = False

    def show(self) -> None:
        """Note that somebody sees a part of the answer."""
        self.was_shown = True

    def end_answer(self, response: ChatResponse) -> None:
        """Note that what was written so far belongs to answers that ended, and why the last one did.

        A vendor may give the calls of every answer the same ids: no result is there yet of what it calls.
        """
        self.whole = len(self.written)
        self.finish_reason = response.finish_reason
        for call in response.tool_calls or ():
            self.finished.pop(call.id, None)

    def begin_last_answer(self, reached: Reached) -> None:
        """Note that the next answer is the last one, and why.

        Raises:
            BudgetExceededError: the last answer was given already.
        """
        if self.wrapped_up:
            raise BudgetExceededError(*reached, partial_text=self.text)
        self.reached = reached

    def end_last_answer(self) -> None:
        """Note that the last answer was given."""
        self.wrapped_up = True

    def take_call(self) -> Reached | None:
        """Take one tool call from the turn's budget, or return the limit that does not allow it."""
        spent, limits = self.spending, self.limits
        reached: Reached | None = None
        if spent.tool_calls >= limits.tool_calls:
            reached = "tool_calls", limits.tool_calls
        elif self.account is not None:
            reached = self.account.take_call()
        if reached is None:
            spent.tool_calls += 1
        else:
            self.reached = reached
        return reached

    @property
    def limit(self) -> str | None:
        """The name of the limit that the turn reached."""
        return None if self.reached is None else self.reached[0]

    @property
    def assigned(self) -> str | None:
        """The provider that a child session was given, whatever its loop chooses."""
        return None if self.route is None else self.route.name

    @property
    def total(self) -> Spending:
        """What the turn spent, its children included."""
        if self.delegated is None:
            return self.spending
        total = Spending()
        total.add(self.spending)
        total.add(self.delegated)
        return total

    @property
    def spent_so_far(self) -> dict[str, JSONValue]:
        """What the session has spent at this moment of its turn, as JSON data."""
        total = Spending()
        total.add(self.spent_before)
        total.add(self.total)
        return total.to_dict()

    @property
    def text(self) -> str:
        """What the model wrote in this turn, as far as it streamed."""
        return "".join(self.written)

    @property
    def unfinished_text(self) -> str:
        """What it wrote of an answer that never became whole."""
        return "".join(self.written[self.whole :])
