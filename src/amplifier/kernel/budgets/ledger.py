"""A session's ledger: what its turns may spend, what they spent, and what its children's turns draw on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from amplifier.kernel.budgets.spending import Spending
from amplifier_sdk.errors import BudgetExceededError, ConfigError, Problem, did_you_mean
from amplifier_sdk.limits import LimitChanges, Limits

if TYPE_CHECKING:
    from amplifier.kernel.budgets.accounts import Account, Reached
    from amplifier.kernel.calls.host import Host

__all__ = ["Ledger"]


class Ledger:
    """Keeps a session's account; `above` is the ledger of its parent.

    `spending` is what all its turns and those of its children spent, in earlier processes as well; `changes` are
    the limits that the running turn was given.

    Args:
        host: the session's.
        limits: the session's.
        spent: what the session had spent when it was opened. It is charged to this session alone: the parent of a
            resumed child was charged when the child spent it.
    """

    __slots__ = ("_account", "above", "changes", "host", "is_running", "limits", "spending")

    def __init__(self, host: Host, limits: Limits, spent: Spending | None = None) -> None:
        self.host: Host = host
        self.limits: Limits = limits
        self.above: Ledger | None = None
        self.spending: Spending = Spending()
        host.spent_before = self.spending
        if spent is not None:
            self.spending.add(spent)
        self.changes: LimitChanges | None = None
        self.is_running: bool = False
        self._account: Account | None = None

    def limits_of(self, changes: LimitChanges | None) -> Limits:
        """Return the session's limits with a turn's changes.

        Raises:
            ConfigError: a change names no limit of a turn, or has a value that the limit cannot have.
        """
        if not changes:
            return self.limits
        known = tuple(LimitChanges.__annotations__)
        problems = [Problem(name, _unknown(name, known)) for name in changes if name not in known]
        if not problems:
            try:
                return attrs.evolve(self.limits, **changes)
            except (TypeError, ValueError) as error:
                problems = [Problem("limits", str(error))]
        raise ConfigError(problems, subject="choice of a turn's limits")

    def begin(self, changes: LimitChanges | None) -> Limits:
        """Set the limits of a turn and open its account, if it needs one.

        Raises:
            BudgetExceededError: nothing is left of a budget that the turn draws on.
        """
        host = self.host
        limits = self.limits_of(changes)
        host.limits, self.changes = limits, changes
        needs_account = limits.tokens is not None or limits.cost_usd is not None or self._has_account
        host.account = self._open_account() if needs_account else None
        if host.account is not None and (reached := host.account.reached):
            raise BudgetExceededError(*reached)
        self.is_running = True
        return limits

    def settle(self) -> None:
        """Add what the turn that ended spent to the session's account and to its parent's."""
        self.is_running = False
        total = self.host.total
        self.spending.add(total)
        if self.above is not None:
            child = Spending(children=1)
            child.add(total)
            self.above.absorb(child)

    @property
    def reached(self) -> Reached | None:
        """The limit that leaves nothing for a child, if there is one."""
        return self.account_for_children().reached

    def absorb(self, child: Spending) -> None:
        """Count what a child's turn spent: for the running turn, else for the session alone."""
        if self.is_running:
            self.host.delegated = self.host.delegated or Spending()
            self.host.delegated.add(child)
            return
        self.spending.add(child)
        if self.above is not None:
            self.above.absorb(child)

    @property
    def _has_account(self) -> bool:
        """Whether turns draw on an account besides their own."""
        limits = self.limits
        return (
            self.above is not None
            or limits.session_tokens is not None
            or limits.session_cost_usd is not None
            or limits.session_tool_calls is not None
        )

    def account_for_children(self) -> Account:
        """Return what a child's turn draws on: the running turn's account, opened for it, else the session's."""
        if not self.is_running:
            return self._account_above()
        if self.host.account is None:
            self.host.account = self._open_account()
        return self.host.account

    def _open_account(self) -> Account:
        """Open the account of the running turn, which may have spent something already."""
        from amplifier.kernel.budgets.accounts import Account  # few turns need one

        return Account.of_turn(self.host.limits, self.host.total, self._account_above())

    def _account_above(self) -> Account:
        """Return the session's account, which draws on the parent's; made when it is first needed."""
        from amplifier.kernel.budgets.accounts import Account  # likewise

        if self._account is None:
            self._account = Account.of_session(self.limits, self.spending)
        self._account.above = None if self.above is None else self.above.account_for_children()
        return self._account


def _unknown(name: str, known: tuple[str, ...]) -> str:
    return f"no limit of a turn{did_you_mean(name, known) or '; known: ' + ', '.join(known)}"
