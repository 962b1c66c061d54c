"""What a session has spent, over all the times that it was opened."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import attrs

from amplifier.kernel.budgets.spending import Spending

__all__ = ["Spent"]

_TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")


@attrs.frozen(kw_only=True)
class Spent:
    """What a session had spent when it was opened: tokens by kind, and US dollars as decimal text."""

    usage: Mapping[str, int] = attrs.field(factory=dict)
    cost_usd: str | None = None

    def plus(self, spending: Spending) -> Spent:
        """Add what it spent since."""
        data = spending.to_dict()
        tokens = {name: value for name in _TOKENS if isinstance(value := data[name], int)}
        cost = data["cost_usd"]
        usage = {name: self.usage.get(name, 0) + value for name, value in tokens.items()}
        if not isinstance(cost, str):
            return Spent(usage=usage, cost_usd=self.cost_usd)
        return Spent(usage=usage, cost_usd=str(Decimal(self.cost_usd or "0") + Decimal(cost)))
