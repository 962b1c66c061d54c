"""How the accounts that all processes share stand: for callers, for the page, and for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import attrs

from amplifier.app.settings.shared_limits import EACH_TENANT, SharedLimits
from amplifier.kernel.reports import report
from amplifier.server.budgets import shown_time
from amplifier.server.quotas import SharedQuotas, tenant_account
from amplifier_kit.quotas import Balance, Window
from amplifier_sdk.errors import StoreError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["describe_quotas", "quota_metrics"]

_PREFIX: Final = "amplifier_server_"
_GAUGES: Final = (
    ("quota_limit", "What a tenant may use."),
    ("quota_used", "What a tenant has used in this window."),
    ("quota_reserved", "What running turns and requests hold."),
)


@attrs.frozen(kw_only=True)
class _Account:
    """An account of a tenant that has a limit."""

    tenant: str
    unit: str
    window: Window | None
    limit: Decimal
    balance: Balance | None = None

    @property
    def spent(self) -> Decimal:
        return Decimal(0) if self.balance is None else self.balance.spent

    @property
    def reserved(self) -> Decimal:
        return Decimal(0) if self.balance is None else self.balance.reserved

    def to_json(self) -> JSONObject:
        described: JSONObject = {
            "tenant": self.tenant,
            "unit": self.unit,
            "limit": f"{self.limit:f}",
            "spent": f"{self.spent:f}",
            "reserved": f"{self.reserved:f}",
        }
        if self.window is not None:
            described["window"] = self.window
            if self.balance is not None:
                described["renews"] = shown_time(self.balance.renews)
        return described

    def labels(self) -> str:
        window = self.window or "now"
        return f'tenant="{self.tenant}",unit="{self.unit}",window="{window}"'


async def describe_quotas(
    quotas: SharedQuotas, tenant: str, *, only: str | None
) -> JSONObject:
    """Describe the accounts of a tenant, or of all, and of all what vendors ask to wait.

    Args:
        quotas: what all processes share.
        tenant: who asks.
        only: whose accounts are meant; `None` for those of all.

    Raises:
        StoreError: the store does not answer.
    """
    begin = "tenant/" if only is None else tenant_account(only, "")
    balances = await quotas.store.balances(begin)
    tenants = {only} if only is not None else {tenant, *_tenants(quotas, balances)}
    accounts: list[JSONValue] = [
        account.to_json() for account in _accounts(quotas.limits, tenants, balances)
    ]
    paused: list[JSONValue] = []
    if only is None:
        paused = [
            {"account": account, "seconds": round(left, 1)}
            for account, left in (await quotas.store.pauses()).items()
        ]
    return {"tenant": tenant, "accounts": accounts, "paused": paused}


async def quota_metrics(quotas: SharedQuotas) -> str:
    """Write the accounts of all tenants, and what vendors ask to wait, as Prometheus reads them."""
    try:
        balances = await quotas.store.balances("tenant/")
        paused = await quotas.store.pauses()
    except (StoreError, OSError) as error:
        # what this process did is worth reading all the same
        report("server.quotas_not_read", error)
        return ""
    tenants = set(_tenants(quotas, balances))
    accounts = list(_accounts(quotas.limits, tenants, balances))
    lines: list[str] = []
    for name, words in _GAUGES:
        lines += _head(name, words)
        for account in accounts:
            value = {
                "quota_limit": account.limit,
                "quota_used": account.spent,
                "quota_reserved": account.reserved,
            }[name]
            lines.append(f"{_PREFIX}{name}{{{account.labels()}}} {value:f}")
    lines += _head("provider_paused_seconds", "What a vendor asks all to wait.")
    for name, left in paused.items():
        label = name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        lines.append(
            f'{_PREFIX}provider_paused_seconds{{account="{label}"}} {left:.1f}'
        )
    return "".join(f"{line}\n" for line in lines)


def _head(name: str, words: str) -> tuple[str, str]:
    return f"# HELP {_PREFIX}{name} {words}", f"# TYPE {_PREFIX}{name} gauge"


def _tenants(quotas: SharedQuotas, balances: Sequence[Balance]) -> Iterator[str]:
    """Yield who has a limit of their own, or has used something."""
    yield from (name for name in quotas.limits.tenants if name != EACH_TENANT)
    for balance in balances:
        owner, tenant, *_ = balance.account.split("/")
        if owner == "tenant":
            yield tenant


def _accounts(
    limits: SharedLimits, tenants: set[str], balances: Sequence[Balance]
) -> Iterator[_Account]:
    """Yield the accounts of tenants that have a limit, in the order of names."""
    known = {(each.account, each.window): each for each in balances}
    for tenant in sorted(tenants):
        found = limits.of_tenant(tenant)
        limited: tuple[tuple[str, Window | None, Decimal | int | None], ...] = (
            ("cost_usd", "day", found.cost_usd.day),
            ("cost_usd", "month", found.cost_usd.month),
            ("tokens", "day", found.tokens.day),
            ("tokens", "month", found.tokens.month),
            ("turns", None, found.turns),
            ("requests", None, found.requests),
        )
        for unit, window, limit in limited:
            if limit is not None:
                yield _Account(
                    tenant=tenant,
                    unit=unit,
                    window=window,
                    limit=Decimal(limit),
                    balance=known.get((tenant_account(tenant, unit), window)),
                )
