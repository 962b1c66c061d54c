"""What all processes of a server may use together: settings under `server.limits` of the person who runs it.

```yaml
server:
  limits:
    tenants:
      "*": {turns: 8, cost_usd: {day: 5, month: 100}}
      acme: {cost_usd: {day: 50}}
    providers:
      anthropic: {requests: 20}
```
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Final

import attrs

from amplifier_sdk.bounds import count, seconds

__all__ = [
    "EACH_TENANT",
    "BudgetLimits",
    "ProviderLimits",
    "SharedLimits",
    "TenantLimits",
]

EACH_TENANT: Final = "*"
"""What stands for each tenant."""


_COUNT: Final = attrs.validators.optional(count)


def _amount(value: object) -> Decimal | None:
    """Read an amount; a float is read as it is written, so that 0.1 stays 0.1."""
    if value is None:
        return None
    amount = Decimal("NaN")
    if isinstance(value, (int, float, str, Decimal)) and not isinstance(value, bool):
        with suppress(InvalidOperation):
            amount = Decimal(str(value))
    # NaN is below nothing and above nothing: such a budget would never be spent
    if not amount.is_finite() or amount <= 0:
        raise ValueError(
            f"A budget is a number above 0, or its decimal text; got {value}"
        )
    return amount


@attrs.frozen(kw_only=True)
class BudgetLimits:
    """How much may be spent in a day and in a month of UTC; `None` is without limit."""

    day: Decimal | None = attrs.field(default=None, converter=_amount)
    month: Decimal | None = attrs.field(default=None, converter=_amount)

    def over(self, other: BudgetLimits) -> BudgetLimits:
        """Return these, and those of another where nothing is said here."""
        return BudgetLimits(
            day=other.day if self.day is None else self.day,
            month=other.month if self.month is None else self.month,
        )


@attrs.frozen(kw_only=True)
class TenantLimits:
    """What a tenant may use: turns and requests to models at once, US dollars, and tokens of input and output."""

    turns: int | None = attrs.field(default=None, validator=_COUNT)
    requests: int | None = attrs.field(default=None, validator=_COUNT)
    cost_usd: BudgetLimits = attrs.field(factory=BudgetLimits)
    tokens: BudgetLimits = attrs.field(factory=BudgetLimits)

    def over(self, other: TenantLimits) -> TenantLimits:
        """Return these, and those of another where nothing is said here."""
        return TenantLimits(
            turns=other.turns if self.turns is None else self.turns,
            requests=other.requests if self.requests is None else self.requests,
            cost_usd=self.cost_usd.over(other.cost_usd),
            tokens=self.tokens.over(other.tokens),
        )


@attrs.frozen(kw_only=True)
class ProviderLimits:
    """What a provider takes: requests at once."""

    requests: int | None = attrs.field(default=None, validator=_COUNT)


@attrs.frozen(kw_only=True)
class SharedLimits:
    """The limits of all processes together.

    Args:
        tenants: by name; `*` is each, and what a name says goes before it.
        providers: by the name under which sessions have them, perhaps with `*`; the first that fits holds.
        max_wait: seconds that a request waits for its turn, and for the end of what a vendor asks to wait.
    """

    tenants: Mapping[str, TenantLimits] = attrs.field(factory=dict)
    providers: Mapping[str, ProviderLimits] = attrs.field(factory=dict)
    max_wait: float = attrs.field(default=300.0, validator=seconds)

    def of_tenant(self, name: str) -> TenantLimits:
        """Return what a tenant may use."""
        return self.tenants.get(name, TenantLimits()).over(self._each)

    def of_provider(self, name: str) -> ProviderLimits:
        """Return what a provider takes, by the name under which a session has it."""
        for pattern, limits in self.providers.items():
            if fnmatchcase(_short(name), _short(pattern)):
                return limits
        return ProviderLimits()

    @property
    def max_turns(self) -> int | None:
        """The most turns at once of any tenant; `None` where one has no limit."""
        known = [limits.over(self._each).turns for limits in self.tenants.values()]
        if self._each.turns is None or None in known:
            return None
        return max(turns for turns in known if turns is not None)

    @property
    def _each(self) -> TenantLimits:
        return self.tenants.get(EACH_TENANT, TenantLimits())


def _short(name: str) -> str:
    return name.removeprefix("provider-")
