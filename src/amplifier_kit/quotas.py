"""What many processes share of something scarce: how much is used is counted in one place, by its clock.

An *account* is something of which there is so much: a tenant's turns at once, a provider's requests at once, a
tenant's US dollars a day. Whoever wants some of it *reserves* it first, on several accounts at once or on none, and
*settles* with what was used. A reservation that was not renewed for its period holds nothing any more. What is settled
after that counts as spent all the same, and never twice.

An account can also be *paused* for a time, as a vendor asks for by `Retry-After`.

`amplifier.testing.stores` checks whether a store guarantees all this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from amplifier_sdk.stores import SessionStore
from amplifier_sdk.values import Value

__all__ = [
    "PAUSES",
    "Balance",
    "Claim",
    "MeteredStore",
    "PauseReader",
    "QuotaStore",
    "Refusal",
    "Reservation",
    "Window",
]

PAUSES: Final = "provider.pauses"
"""The capability with a `PauseReader`, where processes share what vendors ask to wait."""

Window: TypeAlias = Literal["day", "month"]
"""For how long a budget holds: a day or a month of UTC."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Claim(Value):
    """Some of what an account has.

    Args:
        account: its name, which begins with whose it is.
        amount: how much is reserved; of 0 it is asked that anything is left.
        limit: how much there is.
        window: for how long what is spent is gone; `None` where it is free again when it is settled.
    """

    account: str
    amount: Decimal
    limit: Decimal
    window: Window | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Balance(Value):
    """How an account stands.

    Args:
        account: its name.
        window: for how long what is spent is gone.
        spent: what was settled in this window.
        reserved: what reservations hold now.
        renews: when the next window begins, in seconds since the epoch; `None` without one.
        renews_in: the seconds until then, by the store's clock.
    """

    account: str
    window: Window | None
    spent: Decimal
    reserved: Decimal
    renews: float | None = None
    renews_in: float | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Reservation(Value):
    """What was reserved, until it is settled or nobody renews it.

    Args:
        reservation_id: its id.
    """

    reservation_id: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Refusal(Value):
    """What was not reserved: the first claim that does not fit, and how its account stands."""

    claim: Claim
    balance: Balance

    @property
    def is_final(self) -> bool:
        """Whether it would not fit either if all that is reserved were given back."""
        claim, left = self.claim, self.claim.limit - self.balance.spent
        return left <= 0 or claim.amount > left


class PauseReader(Protocol):
    """Says how long requests wait; a provider that retries by itself asks before each retry."""

    async def __call__(self, account: str, /) -> float:
        """Return the seconds for which an account, as a `MeteredProvider` calls it, is paused; 0 where it is not."""
        ...


@runtime_checkable
class QuotaStore(Protocol):
    """Accounts that any number of processes share; every method may raise `StoreError` or `OSError`."""

    async def reserve(
        self, claims: Sequence[Claim], *, period: float
    ) -> Reservation | Refusal:
        """Reserve all claims, or nothing: together with what is spent and reserved none passes its limit.

        Args:
            claims: what is wanted; no two of one account and window.
            period: seconds after which the reservation ends unless it is renewed.
        """

    async def renew(self, reservation_ids: Sequence[str], *, period: float) -> None:
        """Have reservations end a whole period from now; those that have ended stay so."""

    async def settle(
        self, reservation: Reservation, used: Mapping[str, Decimal]
    ) -> None:
        """End a reservation, and count what was used of its accounts; a second call changes nothing.

        Args:
            reservation: one that was made here, perhaps ended by now.
            used: how much by account; what is not named was not used. It may be more than was reserved.
        """

    async def balances(self, begin: str = "") -> tuple[Balance, ...]:
        """Return how accounts stand of which something is spent or reserved, in the order of their names.

        Args:
            begin: how their names begin.
        """

    async def pause(self, account: str, seconds: float) -> None:
        """Pause an account for a time from now; a longer pause that it has stays."""

    async def pauses(self) -> Mapping[str, float]:
        """Return the accounts that are paused, with the seconds that are left."""
        ...


@runtime_checkable
class MeteredStore(SessionStore, Protocol):
    """A store of sessions that has accounts as well; they end with the store, and so do their connections."""

    @property
    def quotas(self) -> QuotaStore:
        """The accounts of its namespace."""
        ...
