"""What every store with accounts guarantees of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from typing import Final

import anyio

from amplifier.testing.stores.behavior import (
    PERIOD,
    StoreBehavior,
    StoreSubject,
    opened,
    same,
)
from amplifier.validation.behaviors import BehaviorFailed
from amplifier_kit.quotas import (
    Claim,
    MeteredStore,
    QuotaStore,
    Refusal,
    Reservation,
    Window,
)

__all__ = ["QUOTAS"]

_WORKERS: Final = 8
_ATTEMPTS: Final = 6


def _claim(
    amount: str, limit: str = "10", *, account: str = "a", window: Window | None = "day"
) -> Claim:
    return Claim(
        account=account, amount=Decimal(amount), limit=Decimal(limit), window=window
    )


@asynccontextmanager
async def _accounts(
    subject: StoreSubject, processes: int
) -> AsyncIterator[list[QuotaStore]]:
    async with AsyncExitStack() as stack:
        quotas: list[QuotaStore] = []
        for _ in range(processes):
            store = await stack.enter_async_context(opened(subject))
            if not isinstance(store, MeteredStore):
                raise BehaviorFailed("the store has no attribute `quotas`")
            quotas.append(store.quotas)
        yield quotas


async def _reserved(
    quotas: QuotaStore, *claims: Claim, period: float = PERIOD
) -> Reservation:
    made = await quotas.reserve(claims, period=period)
    if isinstance(made, Refusal):
        raise BehaviorFailed(f"refused: {made!r}")
    return made


async def _refused(quotas: QuotaStore, *claims: Claim) -> Refusal:
    made = await quotas.reserve(claims, period=PERIOD)
    if isinstance(made, Reservation):
        raise BehaviorFailed(f"reserved: {made!r}; expected a refusal")
    return made


def _final(refusal: Refusal, *, wanted: bool) -> None:
    if refusal.is_final is not wanted:
        raise BehaviorFailed(f"is final: {refusal.is_final}; expected {wanted}")


async def _spent(quotas: QuotaStore) -> list[tuple[str, str, str]]:
    return [
        (each.account, f"{each.spent:f}", f"{each.reserved:f}")
        for each in await quotas.balances()
    ]


async def _limits(subject: StoreSubject) -> None:
    async with _accounts(subject, 2) as (one, other):
        first = await _reserved(one, _claim("7"))
        refusal = await _refused(other, _claim("4"))
        _final(refusal, wanted=False)
        same("what is reserved", f"{refusal.balance.reserved:f}", "7")
        await _reserved(other, _claim("3"))
        await one.settle(first, {"a": Decimal("6.99")})
        same("the accounts", await _spent(other), [("a", "6.99", "3")])
        refusal = await _refused(other, _claim("4"))
        _final(refusal, wanted=True)
        renews_in = refusal.balance.renews_in
        if renews_in is None or not 0 < renews_in <= 86_400:
            raise BehaviorFailed(f"a day is renewed in {renews_in} seconds")


async def _exhausted(subject: StoreSubject) -> None:
    async with _accounts(subject, 1) as (quotas,):
        made = await _reserved(quotas, _claim("1"))
        await quotas.settle(made, {"a": Decimal(12)})
        same("the accounts", await _spent(quotas), [("a", "12", "0")])
        # what nobody knows the amount of is refused as well
        await _refused(quotas, _claim("0"))


async def _all_or_none(subject: StoreSubject) -> None:
    async with _accounts(subject, 1) as (quotas,):
        refusal = await _refused(
            quotas, _claim("1", account="b"), _claim("11", account="a")
        )
        same("the account that refuses", refusal.claim.account, "a")
        same("the accounts", await _spent(quotas), [])
        both = _claim("1"), _claim("1", window="month")
        made = await _reserved(quotas, *both)
        await quotas.settle(made, {"a": Decimal("0.5")})
        balances = await quotas.balances("a")
        seen = sorted((each.window or "", f"{each.spent:f}") for each in balances)
        same("accounts of another name", await quotas.balances("a/"), ())
        same("both windows", seen, [("day", "0.5"), ("month", "0.5")])


async def _slots(subject: StoreSubject) -> None:
    async with _accounts(subject, 2) as (one, other):
        slot = _claim("1", "2", window=None)
        first = await _reserved(one, slot)
        await _reserved(other, slot)
        refusal = await _refused(one, slot)
        _final(refusal, wanted=False)
        same("when it renews", refusal.balance.renews, None)
        await one.settle(first, {"a": Decimal(1)})
        await _reserved(other, slot)
        same("the accounts", await _spent(one), [("a", "0", "2")])


async def _settled_once(subject: StoreSubject) -> None:
    async with _accounts(subject, 2) as (one, other):
        made = await _reserved(one, _claim("2"))
        await one.settle(made, {"a": Decimal(2)})
        # whoever lost the connection in the last step settles again
        await other.settle(made, {"a": Decimal(2)})
        same("the accounts", await _spent(one), [("a", "2", "0")])


async def _dead(subject: StoreSubject) -> None:
    async with _accounts(subject, 2) as (one, other):
        late = await _reserved(one, _claim("8"))
        await subject.expire_leases()
        # what has ended is another's by now
        await one.renew([late.reservation_id], period=PERIOD)
        made = await _reserved(other, _claim("8"))
        same("the accounts", await _spent(other), [("a", "0", "8")])
        # it was paid for all the same
        await one.settle(late, {"a": Decimal(7)})
        await one.settle(late, {"a": Decimal(7)})
        await other.settle(made, {"a": Decimal(1)})
        same("the accounts after both", await _spent(other), [("a", "8", "0")])


async def _renewed(subject: StoreSubject) -> None:
    async with _accounts(subject, 1) as (quotas,):
        made = await _reserved(quotas, _claim("8"), period=0.5)
        left = await _reserved(quotas, _claim("1"), period=0.01)
        await quotas.renew([made.reservation_id], period=PERIOD)
        await anyio.sleep(0.5)
        await quotas.renew([made.reservation_id, left.reservation_id], period=PERIOD)
        same("the accounts", await _spent(quotas), [("a", "0", "8")])


async def _race(subject: StoreSubject) -> None:
    """Let many workers reserve and settle at once, over several connections."""
    overdrawn: list[object] = []

    async def work(quotas: QuotaStore, number: int) -> None:
        for attempt in range(_ATTEMPTS):
            amount = Decimal(f"0.{number + 1}{attempt}")
            # in either order, in which two that lock one by one would wait for each other
            claims = [_claim(str(amount)), _claim("1", "3", account="b", window=None)]
            order = 1 if number % 2 else -1
            made = await quotas.reserve(claims[::order], period=PERIOD)
            for each in await quotas.balances():
                limit = Decimal(10) if each.account == "a" else Decimal(3)
                if each.spent + each.reserved > limit:
                    overdrawn.append(each)
            if isinstance(made, Reservation):
                await quotas.settle(made, {"a": amount})
                settled.append(amount)

    settled: list[Decimal] = []
    async with _accounts(subject, 3) as accounts, anyio.create_task_group() as tasks:
        for number in range(_WORKERS):
            tasks.start_soon(work, accounts[number % 3], number)
    async with _accounts(subject, 1) as (quotas,):
        same("accounts above their limits", overdrawn, [])
        same("what is spent", await _spent(quotas), [("a", f"{sum(settled):f}", "0")])


async def _pauses(subject: StoreSubject) -> None:
    async with _accounts(subject, 2) as (one, other):
        same("what is paused", dict(await other.pauses()), {})
        await one.pause("b", 0.01)
        await one.pause("a", 50)
        await other.pause("a", 5)
        await anyio.sleep(0.02)
        paused = await other.pauses()
        same("what is paused", list(paused), ["a"])
        if not 40 < paused["a"] <= 50:
            raise BehaviorFailed(f"{paused['a']} seconds are left of 50")


# A row: what is done; what is true of a good one; what its author does when it is not.
# fmt: off
QUOTAS: Final = (
    StoreBehavior(id="quota.holds", check=_limits,
        says="What is spent and reserved of an account never passes its limit, whichever process asks.",
        fix="Lock the account's row before you add up what is reserved."),
    StoreBehavior(id="quota.is-exhausted", check=_exhausted,
        says="Nothing is reserved of an account of which nothing is left, be it an amount of 0.",
        fix="Refuse where the limit is spent, before you compare the amount."),
    StoreBehavior(id="quota.all-or-none", check=_all_or_none,
        says="Claims on several accounts are reserved together or not at all.",
        fix="Check all of them before the first one is stored, in one transaction."),
    StoreBehavior(id="quota.slots", check=_slots,
        says="An account without a window has everything back when it is settled.",
        fix="Count what was used only where the claim has a window."),
    StoreBehavior(id="quota.settles-once", check=_settled_once,
        says="What was used counts once, however often it is settled.",
        fix="Delete the reservation and add what was used in one transaction."),
    StoreBehavior(id="quota.ends-unless-renewed", check=_dead,
        says="A reservation of a dead process holds nothing, and counts once when it is settled late.",
        fix="Leave it where it is when its time is over; do not count it, and do not renew it."),
    StoreBehavior(id="quota.is-renewed", check=_renewed,
        says="A reservation that is renewed in time stays, and what has ended stays so.",
        fix="Renew by id where the reservation has not ended yet."),
    StoreBehavior(id="quota.race", check=_race,
        says="Many workers at once overdraw nothing, lose nothing, and do not wait for each other for ever.",
        fix="Lock all accounts of the claims in the order of their names."),
    StoreBehavior(id="quota.pauses", check=_pauses,
        says="An account is paused for all processes, for the longest time that anybody asked for.",
        fix="Store when the pause ends by the store's clock, and the later of two."),
)
"""The behaviours of accounts."""
