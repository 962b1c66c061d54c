"""A session's ledger: what its turns may spend, what they spent, and what its children's turns draw on."""

from __future__ import annotations

import attrs

from amplifier.kernel.budgets.accounts import Account, Reached
from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.budgets.turn import TurnBudget
from amplifier_sdk.errors import BudgetExceededError, ConfigError, Problem, did_you_mean
from amplifier_sdk.limits import LimitChanges, Limits

__all__ = ["Ledger", "TurnShare"]


@attrs.frozen(eq=False, repr=False)
class TurnShare:
    """What work draws on that a turn began and that may outlive it, also once the turn has ended.

    Args:
        account: the turn's, else that of its session.
        changes: the limits that the turn was given.
        turn: its budget; `None` where no turn ran.
    """

    account: Account
    changes: LimitChanges | None = None
    turn: TurnBudget | None = None


@attrs.define(eq=False, repr=False)
class Ledger:
    """A session's account; `parent` is the ledger of the session that it is a child of.

    `spending` is what all its turns and those of its children spent, in earlier processes as well. `running` is the
    budget of the turn that runs, and `changes` are the limits that this turn was given. `drawn` is what a session draws
    on that was made in its parent's background.

    Args:
        limits: the session's.
        spending: what the session had spent when it was opened. It is charged to this session alone: the parent of
            a resumed child was charged when the child spent it.
    """

    limits: Limits
    spending: Spending = attrs.field(factory=Spending)
    parent: Ledger | None = None
    running: TurnBudget | None = None
    changes: LimitChanges | None = None
    drawn: TurnShare | None = None
    _account: Account | None = None

    def limits_of(self, changes: LimitChanges | None) -> Limits:
        """Return the session's limits with a turn's changes.

        Raises:
            ConfigError: a change names no limit of a turn, or has a value that the limit cannot have.
        """
        if not changes:
            return self.limits
        known = tuple(LimitChanges.__annotations__)
        problems = [
            Problem(name, _unknown(name, known))
            for name in changes
            if name not in known
        ]
        if not problems:
            try:
                return attrs.evolve(self.limits, **changes)
            except (TypeError, ValueError) as error:
                problems = [Problem("limits", str(error))]
        raise ConfigError(problems, subject="choice of a turn's limits")

    def open_turn(self, changes: LimitChanges | None) -> TurnBudget:
        """Open the budget of a turn, with an account if it needs one.

        Raises:
            BudgetExceededError: nothing is left of a budget that the turn draws on.
        """
        limits = self.limits_of(changes)
        budget = TurnBudget(limits, self.spending)
        if (
            limits.tokens is not None
            or limits.cost_usd is not None
            or self._has_account
        ):
            budget.account = self._open_account(budget)
            if reached := budget.account.reached:
                raise BudgetExceededError(*reached)
        # after the check: a turn that may not begin must not absorb what children spend
        self.running, self.changes = budget, changes
        return budget

    def settle(self, budget: TurnBudget) -> None:
        """Add what the turn that ended spent to the session's account and to its parent's."""
        # first, so that nothing is added to a budget that was counted already
        self.running = None
        total = budget.total
        self.spending.add(total)
        if self.parent is not None:
            # `children` counts turns of children, so this one is counted by its parent
            child = Spending(children=1)
            child.add(total)
            self.parent.absorb(child, self.drawn)

    @property
    def reached(self) -> Reached | None:
        """The limit that leaves nothing for a child, if there is one."""
        return self.account_for_children().reached

    def absorb(self, child: Spending, drawn: TurnShare | None = None) -> None:
        """Count what a child's turn spent: for the running turn, else for the session alone.

        Args:
            child: what it spent.
            drawn: what the child drew on, where that is the share of one turn; a later turn is not charged with it.
        """
        running = self.running
        if running is not None and (drawn is None or drawn.turn is running):
            running.absorb(child)
            return
        self.spending.add(child)
        if self.parent is not None:
            self.parent.absorb(child, self.drawn)

    def share(self) -> TurnShare:
        """Return what work that begins now draws on, also after the running turn."""
        changes = self.changes
        if self.running is None:
            changes = None
        return TurnShare(self.account_for_children(), changes, self.running)

    @property
    def _has_account(self) -> bool:
        """Whether turns draw on an account besides their own."""
        limits = self.limits
        return (
            self.parent is not None
            or limits.session_tokens is not None
            or limits.session_cost_usd is not None
            or limits.session_tool_calls is not None
        )

    def account_for_children(self) -> Account:
        """Return what a child's turn draws on: the running turn's account, opened for it, else the session's."""
        if self.running is None:
            return self._account_of_session()
        if self.running.account is None:
            self.running.account = self._open_account(self.running)
        return self.running.account

    def _open_account(self, budget: TurnBudget) -> Account:
        """Open the account of a turn, which may have spent something already."""
        return Account.of_turn(budget.limits, budget.total, self._account_of_session())

    def _account_of_session(self) -> Account:
        """Return the session's account, which draws on the parent's; made when it is first needed."""
        if self._account is None:
            self._account = Account.of_session(self.limits, self.spending)
        if self.parent is None:
            self._account.parent = None
        else:
            # anew each time: the parent may run another turn by now, or none
            self._account.parent = self._account_above(self.parent)
        return self._account

    def _account_above(self, parent: Ledger) -> Account:
        """Return the account of the parent's that the session draws on."""
        if self.drawn is not None:
            return self.drawn.account
        return parent.account_for_children()


def _unknown(name: str, known: tuple[str, ...]) -> str:
    return f"no limit of a turn{did_you_mean(name, known) or '; known: ' + ', '.join(known)}"
