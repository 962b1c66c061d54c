"""Accounts: budgets of tokens, cost and tool calls that several turns share.

A turn with such a limit has an account, and so have a session with limits for all its turns and a turn that
has children. Each draws on the one above: a child's turn on its parent's. A step reserves on all of them
before it runs and settles afterwards, so that children beside each other cannot spend one rest twice. What a
model call will use is not known before: as much is reserved as the last one took.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Self, TypeAlias

import attrs

from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.reports import report
from amplifier_sdk.chat import Usage
from amplifier_sdk.limits import Limits

__all__ = ["Account", "Reached"]

Reached: TypeAlias = tuple[str, object]
"""A limit that is reached: its name as in `Limits`, and how much it allows."""

_NOTHING = Usage(input_tokens=0, output_tokens=0, total_tokens=0)


@attrs.define(eq=False)
class Account:
    """One budget, what was taken from it, and what running steps have reserved; `None` means no limit.

    `prefix` stands before the limits' names; `parent` is the account that it draws on, `last` what its last model
    call used.
    """

    tokens: int | None = None
    cost_usd: Decimal | None = None
    tool_calls: int | None = None
    prefix: str = ""
    parent: Account | None = None
    spent_tokens: int = 0
    spent_usd: Decimal = Decimal(0)
    spent_calls: int = 0
    held_tokens: int = 0
    held_usd: Decimal = Decimal(0)
    last: Usage | None = None
    _warned: bool = False

    @classmethod
    def of_turn(cls, limits: Limits, spent: Spending, parent: Account | None) -> Self:
        """Open the account of a turn that has spent something already."""
        account = cls(
            tokens=limits.tokens,
            cost_usd=limits.cost_usd,
            tool_calls=limits.tool_calls,
            parent=parent,
        )
        account._begin_with(spent)
        return account

    @classmethod
    def of_session(cls, limits: Limits, spent: Spending) -> Self:
        """Open the account of a session, for all its turns."""
        account = cls(
            tokens=limits.session_tokens,
            cost_usd=limits.session_cost_usd,
            tool_calls=limits.session_tool_calls,
            prefix="session_",
        )
        account._begin_with(spent)
        return account

    @property
    def reached(self) -> Reached | None:
        """The first limit of this account or of a parent of which nothing is left."""
        for account in self._chain():
            if (
                account.tokens is not None
                and account.spent_tokens + account.held_tokens >= account.tokens
            ):
                return f"{account.prefix}tokens", account.tokens
            if (
                account.cost_usd is not None
                and account.spent_usd + account.held_usd >= account.cost_usd
            ):
                return f"{account.prefix}cost_usd", account.cost_usd
            if (
                account.tool_calls is not None
                and account.spent_calls >= account.tool_calls
            ):
                return f"{account.prefix}tool_calls", account.tool_calls
        return None

    def take_call(self) -> Reached | None:
        """Take one tool call from this account and all parents, or return the limit that does not allow it."""
        # all are asked before any is charged: a refused call costs nobody
        for account in self._chain():
            if (
                account.tool_calls is not None
                and account.spent_calls >= account.tool_calls
            ):
                return f"{account.prefix}tool_calls", account.tool_calls
        for account in self._chain():
            account.spent_calls += 1
        return None

    def hold(self) -> Usage:
        """Reserve as much as the last model call took; give it back with `release` or `settle`."""
        # the nearest that knows: a child's first call is guessed by its parent's last
        held = next(
            (account.last for account in self._chain() if account.last is not None),
            _NOTHING,
        )
        self._add_held(held, 1)
        return held

    def release(self, held: Usage | None) -> None:
        """Give back what was reserved; `None` when the account was opened while the step ran."""
        if held is not None:
            self._add_held(held, -1)

    def settle(self, held: Usage | None, usage: Usage | None, provider: str) -> None:
        """Give back what was reserved and take what was used, as the provider says."""
        # first, so that what was used never counts twice, even for a moment
        self.release(held)
        for account in self._chain():
            account.warn(usage, provider)
        if usage is None:
            return
        # on this account alone: a child's calls say little of its parent's
        self.last = usage
        for account in self._chain():
            account.spent_tokens += usage.total_tokens
            # an unknown cost counts as nothing, which `warn` has reported
            account.spent_usd += usage.cost_usd or 0

    def warn(self, usage: Usage | None, provider: str) -> None:
        """Report once that a provider does not say what a limit is about, so that it cannot hold."""
        has_no_tokens = self.tokens is not None and usage is None
        has_no_cost = self.cost_usd is not None and (
            usage is None or usage.cost_usd is None
        )
        if (has_no_tokens or has_no_cost) and not self._warned:
            self._warned = True
            limit = self.prefix + ("tokens" if has_no_tokens else "cost_usd")
            report("budget.usage_unknown", provider=provider, limit=limit)

    def _begin_with(self, spent: Spending) -> None:
        self.spent_calls = spent.tool_calls
        if spent.usage is not None:
            self.spent_tokens = spent.usage.total_tokens
            self.spent_usd = spent.usage.cost_usd or Decimal(0)

    def _add_held(self, usage: Usage, sign: int) -> None:
        for account in self._chain():
            account.held_tokens += sign * usage.total_tokens
            account.held_usd += sign * (usage.cost_usd or Decimal(0))

    def _chain(self) -> Iterator[Account]:
        account: Account | None = self
        while account is not None:
            yield account
            account = account.parent
