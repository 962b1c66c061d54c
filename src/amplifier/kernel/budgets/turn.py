"""A turn's budget: its limits, what it has spent, and the limit that ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio import CancelScope

from amplifier.kernel.budgets.expenses import Spending
from amplifier_sdk.errors import BudgetExceededError
from amplifier_sdk.limits import Limits

if TYPE_CHECKING:
    from amplifier.kernel.budgets.accounts import Account, Reached
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["TurnBudget"]

LAST_PART: Final = 0.1
"""The part of a turn's `wall_time` that is reserved for its last answer."""


@attrs.define(eq=False, repr=False)
class TurnBudget:
    """What one turn may spend, and what it spent.

    Args:
        limits: the turn's.
        before: what the session had spent when the turn began.
        account: the budget of tokens, cost and calls that it shares with others, where there is one.
        spending: what the turn itself spent.
        delegated: what the turns of its children spent.
        scope: has the deadline of a turn that runs.
        scope_class: what makes the scopes of the turn's steps.
        reached: the limit that ended it, or is about to.
        wrapped_up: whether the last answer was given, so that there can be no other.
    """

    limits: Limits = Limits()
    before: Spending = attrs.field(factory=Spending)
    account: Account | None = None
    spending: Spending = attrs.field(factory=Spending)
    delegated: Spending | None = None
    scope: CancelScope | None = None
    scope_class: type[CancelScope] = anyio.CancelScope
    reached: Reached | None = None
    wrapped_up: bool = False

    def begin_call(self) -> Reached | None:
        """Begin a provider call; return the limit that makes its answer the last one, if there is one."""
        spent, limits = self.spending, self.limits
        # with this call: the last one must not ask for tools that nobody would run
        if spent.provider_calls + 1 >= limits.iterations:
            return "iterations", limits.iterations
        if spent.tool_calls >= limits.tool_calls:
            return "tool_calls", limits.tool_calls
        if self.account is not None and (reached := self.account.reached):
            return reached
        # A turn's first call needs no reading of the clock.
        if not spent.provider_calls or self.scope is None:
            return None
        if anyio.current_time() < self.scope.deadline - limits.wall_time * LAST_PART:
            return None
        return "wall_time", f"{limits.wall_time:g} s"

    def begin_last_answer(self, reached: Reached, text: str) -> None:
        """Note that the next answer is the last one, and why.

        Args:
            reached: the limit.
            text: what the model has written so far.

        Raises:
            BudgetExceededError: the last answer was given already.
        """
        if self.wrapped_up:
            raise BudgetExceededError(*reached, partial_text=text)
        self.reached = reached

    def end_last_answer(self) -> None:
        """Note that the last answer was given."""
        self.wrapped_up = True

    def take_call(self) -> Reached | None:
        """Take one tool call from the budget, or return the limit that does not allow it."""
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

    def absorb(self, child: Spending) -> None:
        """Count what the turn of a child spent."""
        if self.delegated is None:
            self.delegated = Spending()
        self.delegated.add(child)

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
        total.add(self.before)
        total.add(self.total)
        return total.to_dict()
