"""Budgets of tenants: what a request may take, what is said where it is refused, and how they stand."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from amplifier.server.quotas import SharedQuotas
from amplifier.serving.errors import RequestError
from amplifier_kit.compaction.meters import most_of_text, most_tokens
from amplifier_kit.quotas import Refusal
from amplifier_sdk.chat import ChatRequest, Usage
from amplifier_sdk.contracts import MeteredProvider
from amplifier_sdk.errors import BudgetExceededError

__all__ = [
    "TenantBudgetError",
    "max_usage",
    "require_budget",
    "shown_time",
]

_NOTHING: Final = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
_MAX_ANSWER: Final = 32_000
"""The tokens of an answer whose length neither the request nor the provider limits."""

_UNITS: Final = {"cost_usd": "US dollars", "tokens": "tokens"}


class TenantBudgetError(BudgetExceededError):
    """A tenant's budget does not allow a request.

    Args:
        refusal: what was claimed, and how the account stands.
    """

    def __init__(self, refusal: Refusal) -> None:
        claim, balance = refusal.claim, refusal.balance
        _, tenant, unit = claim.account.split("/")
        left = max(Decimal(0), claim.limit - balance.spent)
        budget = f"{claim.limit:f} {_UNITS[unit]} a {claim.window}"
        message = (
            f"The budget of tenant {tenant!r} is {budget}, of which {left:f} are left"
        )
        if left > 0:
            message += f", and a request may take {claim.amount:f}; `max_tokens` of the provider lowers that"
        super().__init__(
            f"{unit} of tenant {tenant!r} a {claim.window}",
            claim.limit,
            message=f"{message}. It renews at {shown_time(balance.renews)}",
        )
        self.retry_after: float = balance.renews_in or 0.0


async def max_usage(provider: object, request: ChatRequest) -> Usage:
    """Return what a request uses at most: what its provider says, or what can be counted here, at an unknown cost."""
    if isinstance(provider, MeteredProvider):
        return await provider.max_usage(request)
    sent = sum(most_tokens(message.to_dict()) for message in request.messages)
    sent += sum(most_of_text(str(tool.parameters)) for tool in request.tools or ())
    said = request.max_output_tokens or _claimed_output(provider)
    return Usage(input_tokens=sent, output_tokens=said, total_tokens=sent + said)


async def require_budget(quotas: SharedQuotas, tenant: str) -> None:
    """Refuse a turn of a tenant of whose budgets nothing is left.

    Raises:
        RequestError: says which one, and when it renews.
        StoreError: the store does not answer.
    """
    claims = tuple(quotas.budget_claims(tenant, _NOTHING))
    if not claims:
        return
    made = await quotas.reserve(claims)
    if not isinstance(made, Refusal):
        await quotas.settle(made, {})
    elif made.is_final:
        error = TenantBudgetError(made)
        after = {"Retry-After": f"{error.retry_after:.0f}"}
        raise RequestError(429, "budget_exceeded", str(error), after)


def _claimed_output(provider: object) -> int:
    """Return how long an answer of a provider can be, by its own word."""
    get_info = getattr(provider, "get_info", None)
    info = None if get_info is None else get_info()
    claimed = None if info is None else info.defaults.get("max_output_tokens")
    return claimed if isinstance(claimed, int) else _MAX_ANSWER


def shown_time(at: float | None) -> str:
    """Return a moment as it is shown, in UTC."""
    if at is None:
        return "never"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
