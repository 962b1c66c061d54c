"""What this process takes of what all processes share: turns, requests and budgets, in the accounts of the store.

Accounts are named by their owner: `tenant/NAME/turns`, `…/requests`, `…/cost_usd`, `…/tokens`, and `provider/ACCOUNT`,
which is also what a vendor's `Retry-After` pauses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import inf
from random import uniform
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.app.directories import AppDirs
from amplifier.app.settings.settings import load_settings, settings_file
from amplifier.app.settings.shared_limits import EACH_TENANT, SharedLimits
from amplifier.kernel.reports import report
from amplifier.server.retries import Retries, problem_of
from amplifier.server.stores import ServerStores, check_tenant
from amplifier_kit.quotas import (
    Claim,
    MeteredStore,
    QuotaStore,
    Refusal,
    Reservation,
    Window,
)
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import ConfigError, Problem, StoreError

__all__ = [
    "SharedQuotas",
    "amounts_of",
    "open_quotas",
    "provider_account",
    "read_limits",
    "tenant_account",
]

_PERIOD: Final = 30.0
"""Seconds after which what a dead process held is free."""

_FRESH: Final = 0.5
"""Seconds for which the pauses that were read are taken as they were."""

_MAX_PAUSE: Final = 3600.0
"""Seconds of a pause at most: one request then asks whether it is still wanted."""

_SPREAD: Final = 0.1
_MIN_SPREAD: Final = 0.5
_MAX_SPREAD: Final = 10.0
_WINDOWS: Final[tuple[Window, ...]] = ("day", "month")


@attrs.define(eq=False)
class SharedQuotas:
    """The accounts that this process shares with others.

    Args:
        store: where they are.
        limits: how much there is.
        last_costs: what the last request to a provider cost, by its account.
    """

    store: QuotaStore
    limits: SharedLimits
    last_costs: dict[str, Decimal] = attrs.field(factory=dict)
    _held: set[str] = attrs.field(factory=set)
    _unsettled: list[tuple[Reservation, Mapping[str, Decimal]]] = attrs.field(
        factory=list
    )
    _ends: Mapping[str, float] = attrs.field(factory=dict)
    _read_at: float = -inf

    async def run(self) -> None:
        """Renew what is held, and settle what the store did not take, until cancelled."""
        retries = Retries("server.quotas_not_renewed", _PERIOD / 3, _PERIOD / 3)
        while True:
            await anyio.sleep(_PERIOD / 3)
            try:
                unsettled, self._unsettled = self._unsettled, []
                for reservation, used in unsettled:
                    await self.settle(reservation, used)
                if self._held:
                    await self.store.renew([*self._held], period=_PERIOD)
                retries.succeed()
            except (StoreError, OSError) as error:
                # what is not renewed in time is taken by others, and counts all the same
                retries.report(error)

    async def reserve(self, claims: Sequence[Claim]) -> Reservation | Refusal:
        """Reserve claims until they are settled, or this process is dead.

        Raises:
            StoreError: the store does not answer.
        """
        # what is reserved is known here, also where whoever wants it is cancelled now
        with anyio.CancelScope(shield=True):
            made = await self.store.reserve(claims, period=_PERIOD)
        if isinstance(made, Reservation):
            self._held.add(made.reservation_id)
        return made

    async def settle(
        self, reservation: Reservation, used: Mapping[str, Decimal]
    ) -> None:
        """End a reservation; where the store does not answer, or not in time, this is done later."""
        is_settled = False
        try:
            await self.store.settle(reservation, used)
            is_settled = True
        except (StoreError, OSError) as error:
            report("server.quota_not_settled", problem=problem_of(error))
        finally:
            if is_settled:
                self._held.discard(reservation.reservation_id)
            else:
                # also where whoever settles waits no longer
                self._unsettled.append((reservation, used))

    async def charge(self, tenant: str, usage: Usage) -> None:
        """Count what a tenant used without a reservation, also beyond a budget."""
        nothing = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
        claims = [
            attrs.evolve(claim, limit=Decimal("Infinity"))
            for claim in self.budget_claims(tenant, nothing)
        ]
        try:
            made = await self.reserve(claims)
        except (StoreError, OSError) as error:
            problem = problem_of(error)
            report("server.use_not_counted", problem=problem, tenant=tenant)
            return
        if isinstance(made, Reservation):
            await self.settle(made, amounts_of(tenant, usage))

    async def pause(self, account: str, seconds: float) -> None:
        """Let all processes hold the requests of an account back for a time."""
        seconds = min(seconds, _MAX_PAUSE)
        report("provider.paused", account=account, seconds=round(seconds, 1))
        try:
            await self.store.pause(account, seconds)
        except (StoreError, OSError) as error:
            # here it holds all the same
            report("server.pause_not_stored", problem=problem_of(error))
        end = anyio.current_time() + seconds
        self._ends = {**self._ends, account: max(end, self._ends.get(account, end))}

    async def pause_left(self, account: str) -> float:
        """Return the seconds for which an account is paused, by the store's clock; 0 where it is not."""
        now = anyio.current_time()
        if now - self._read_at >= _FRESH:
            self._read_at = now
            try:
                left = await self.store.pauses()
            except (StoreError, OSError) as error:
                # a pause spares a request that is refused, and is no limit
                report("server.pauses_not_read", problem=problem_of(error))
            else:
                now = anyio.current_time()
                self._ends = {name: now + rest for name, rest in left.items()}
        return max(0.0, self._ends.get(account, now) - now)

    async def sleep_through(self, left: float) -> None:
        """Wait for the end of a pause, and somewhat longer: who waits for it does not return at one moment."""
        spread = min(max(left * _SPREAD, _MIN_SPREAD), _MAX_SPREAD)
        await anyio.sleep(left + uniform(0, spread))  # noqa: S311  # no secret

    # -- what is claimed

    def turn_claims(self, tenant: str) -> tuple[Claim, ...]:
        """Return what a turn of a tenant claims; nothing where turns have no limit."""
        limit = self.limits.of_tenant(tenant).turns
        if limit is None:
            return ()
        return (_slot(tenant_account(tenant, "turns"), limit),)

    def request_claims(
        self, tenant: str, provider: str, account: str, bound: Usage
    ) -> tuple[Claim, ...]:
        """Return what a request to a model claims.

        Args:
            tenant: whose request it is.
            provider: the name under which the session has the provider.
            account: whose limits the provider counts it against.
            bound: what it uses at most.
        """
        limits = self.limits.of_tenant(tenant)
        slots = (
            (account, self.limits.of_provider(provider).requests),
            (tenant_account(tenant, "requests"), limits.requests),
        )
        return (
            *(_slot(name, limit) for name, limit in slots if limit is not None),
            *self.budget_claims(tenant, bound),
        )

    def budget_claims(self, tenant: str, bound: Usage) -> Iterator[Claim]:
        """Yield what a use claims of the budgets of a tenant."""
        limits, used = self.limits.of_tenant(tenant), amounts_of(tenant, bound)
        for unit, budget in (("cost_usd", limits.cost_usd), ("tokens", limits.tokens)):
            account = tenant_account(tenant, unit)
            for window in _WINDOWS:
                limit = budget.day if window == "day" else budget.month
                if limit is not None:
                    yield Claim(
                        account=account,
                        amount=used[account],
                        limit=limit,
                        window=window,
                    )

    def has_budget(self, tenant: str) -> bool:
        """Whether a tenant has any budget."""
        nothing = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
        return any(True for _ in self.budget_claims(tenant, nothing))


async def open_quotas(stores: ServerStores) -> SharedQuotas | None:
    """Return what a server's processes share; `None` where the store has no accounts.

    Raises:
        ConfigError: the limits have problems, stand where they do not count, or the store has no accounts for them.
        StoreError: the store cannot be opened.
    """
    limits = await to_thread.run_sync(read_limits, stores.dirs)
    store = await stores.server()
    if isinstance(store, MeteredStore):
        return SharedQuotas(store.quotas, limits)
    if limits.tenants or limits.providers:
        problem = Problem("server.limits", "the store has no accounts to count in")
        raise ConfigError([problem], subject="settings")
    return None


def read_limits(dirs: AppDirs) -> SharedLimits:
    """Read the limits of the person who runs the server.

    Raises:
        ConfigError: they have problems, or stand in the served folder, which sessions write in.
    """
    settings = load_settings(dirs)
    for layer in settings.layers:
        if layer.scope != "user" and "server" in layer.values:
            place = settings_file("user", dirs)
            problem = f"counts in your own settings alone: {str(place)!r}"
            raise ConfigError.of(
                "server", problem, subject=f"settings file {str(layer.path)!r}"
            )
    limits = settings.read().server.limits
    for name in limits.tenants:
        if name != EACH_TENANT:
            check_tenant(name, place="server.limits.tenants", subject="settings")
    return limits


def amounts_of(tenant: str, usage: Usage) -> Mapping[str, Decimal]:
    """Return what a use is in the accounts of a tenant's budgets; an unknown cost counts as nothing."""
    return {
        tenant_account(tenant, "cost_usd"): usage.cost_usd or Decimal(0),
        tenant_account(tenant, "tokens"): Decimal(usage.total_tokens),
    }


def tenant_account(tenant: str, unit: str) -> str:
    """Return the name of an account of a tenant."""
    return f"tenant/{tenant}/{unit}"


def provider_account(name: str) -> str:
    """Return the name of the account of what a provider calls its account."""
    return f"provider/{name}"


def _slot(account: str, limit: int) -> Claim:
    return Claim(account=account, amount=Decimal(1), limit=Decimal(limit))
