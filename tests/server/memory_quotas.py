"""Accounts in memory, by the event loop's clock: those of a test in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

import anyio
import attrs

from amplifier_kit.quotas import Balance, Claim, Refusal, Reservation
from amplifier_kit.windows import Bucket, balance_of, bucket_of, refused
from amplifier_sdk.errors import StoreUnavailableError

__all__ = ["MemoryQuotas"]

ZERO = Decimal(0)


@attrs.define(eq=False)
class MemoryQuotas:
    """A `QuotaStore`; with `is_down` no method answers."""

    spent: dict[Bucket, Decimal] = attrs.field(factory=dict)
    held: dict[str, tuple[dict[Bucket, Decimal], float]] = attrs.field(factory=dict)
    paused: dict[str, float] = attrs.field(factory=dict)
    calls: Counter[str] = attrs.field(factory=Counter)
    is_down: bool = False

    async def reserve(
        self, claims: Sequence[Claim], *, period: float
    ) -> Reservation | Refusal:
        now = await self._now("reserve")
        refusal = refused(claims, self.spent, self._reserved(now), now)
        if refusal is not None:
            return refusal
        made = Reservation(reservation_id=str(self.calls["reserve"]))
        wanted = {
            bucket_of(claim.account, claim.window, now): claim.amount
            for claim in claims
        }
        self.held[made.reservation_id] = wanted, now + period
        return made

    async def renew(self, reservation_ids: Sequence[str], *, period: float) -> None:
        now = await self._now("renew")
        for each in reservation_ids:
            if each in self.held and self.held[each][1] > now:
                self.held[each] = self.held[each][0], now + period

    async def settle(
        self, reservation: Reservation, used: Mapping[str, Decimal]
    ) -> None:
        await self._now("settle")
        buckets, _ = self.held.pop(reservation.reservation_id, ({}, 0.0))
        for bucket in buckets:
            if bucket[1]:
                more = used.get(bucket[0], ZERO)
                self.spent[bucket] = self.spent.get(bucket, ZERO) + more

    async def balances(self, begin: str = "") -> tuple[Balance, ...]:
        now = await self._now("balances")
        reserved = self._reserved(now)
        return tuple(
            balance_of(
                bucket, self.spent.get(bucket, ZERO), reserved.get(bucket, ZERO), now
            )
            for bucket in sorted({*self.spent, *reserved})
            if bucket[0].startswith(begin)
        )

    async def pause(self, account: str, seconds: float) -> None:
        end = await self._now("pause") + seconds
        self.paused[account] = max(end, self.paused.get(account, end))

    async def pauses(self) -> Mapping[str, float]:
        now = await self._now("pauses")
        return {name: end - now for name, end in self.paused.items() if end > now}

    def _reserved(self, now: float) -> dict[Bucket, Decimal]:
        reserved: dict[Bucket, Decimal] = {}
        for buckets, end in self.held.values():
            for bucket, amount in buckets.items():
                if end > now:
                    reserved[bucket] = reserved.get(bucket, ZERO) + amount
        return reserved

    async def _now(self, name: str) -> float:
        await anyio.lowlevel.checkpoint()
        self.calls[name] += 1
        if self.is_down:
            raise StoreUnavailableError("it does not answer")
        return anyio.current_time()
