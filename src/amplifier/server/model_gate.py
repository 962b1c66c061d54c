"""What stands before a session's requests to models: limits that all processes share, and what vendors ask to wait.

It is the innermost middleware of a session and of its children, so that what others retry is counted each time. Who
waits here holds no deadline of the turn, and the session's lease is renewed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal, InvalidOperation
from random import uniform
from typing import Final, cast

import anyio
import attrs
from anyio import lowlevel

from amplifier.kernel.budgets.deadlines import deadlines_held
from amplifier.kernel.reports import report
from amplifier.server.budgets import TenantBudgetError, max_usage
from amplifier.server.quotas import SharedQuotas, amounts_of, provider_account
from amplifier_kit.quotas import PAUSES, Claim, Refusal, Reservation
from amplifier_sdk.chat import ChatResponse, Usage
from amplifier_sdk.contracts import Coordinator, HookHandler, MeteredProvider
from amplifier_sdk.errors import (
    LLMError,
    LLMTimeoutError,
    RateLimitError,
    StreamError,
)
from amplifier_sdk.events import (
    LLM_RESPONSE,
    PROVIDER_RETRY,
    PROVIDER_THROTTLE,
    LlmResponse,
    ProviderRetry,
    ProviderThrottle,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.middleware import ModelCall, Proceed, event_of

__all__ = ["ModelGate"]

_INNERMOST: Final = 1_000_000
_SETTLING: Final = 5.0
_POLL: Final = 0.1
_MAX_POLL: Final = 1.0
_BUSY: Final = (429, 503, 529)
_IS_COUNTED: Final = ContextVar("_IS_COUNTED", default=False)
"""Whether the running code is a request that was let through."""

_NOTHING: Final[Mapping[str, Decimal]] = {}


@attrs.define(eq=False)
class ModelGate:
    """Lets the requests of a session to models through, one after the other as there is room.

    Args:
        quotas: what this process takes of what all share.
        tenant: whose session it is.
        coordinator: the session's.
    """

    quotas: SharedQuotas
    tenant: str
    coordinator: Coordinator
    _is_reported: bool = False

    def register(self) -> None:
        """Stand before the requests of the session and its children."""
        hooks = self.coordinator.hooks
        self.coordinator.register_capability(PAUSES, self._pause_left)
        around = cast("HookHandler", self.around)  # which middleware is registered as
        hooks.register(event_of("model"), around, _INNERMOST, decides=False)
        hooks.register(PROVIDER_RETRY, self.note_retry, decides=False)
        hooks.register(LLM_RESPONSE, self.note_response, decides=False)

    async def around(
        self, call: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
    ) -> ChatResponse:
        """Let a request through when there is room for it, and pay for it.

        Raises:
            TenantBudgetError: a budget does not allow it.
            RateLimitError: it would wait for too long.
            LLMError: the provider's own failure.
        """
        provider, account = self._provider(call.provider)
        bound = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
        if self.quotas.has_budget(self.tenant):
            bound = await max_usage(provider, call.request)
        if bound.cost_usd is None:
            # what the last one took, where nobody knows the price beforehand
            last = self.quotas.last_costs.get(account)
            bound = attrs.evolve(bound, cost_usd=last)
        claims = self.quotas.request_claims(self.tenant, call.provider, account, bound)
        with deadlines_held():
            reservation = await self._admit(call, account, claims)
        used, token = _NOTHING, _IS_COUNTED.set(True)
        try:
            await lowlevel.checkpoint_if_cancelled()
            # what is sent and has no end may have been billed
            used = amounts_of(self.tenant, bound)
            response = await proceed(call)
            usage = self._used(call, response, bound)
            used = amounts_of(self.tenant, usage)
            if usage.cost_usd is not None:
                self.quotas.last_costs[account] = usage.cost_usd
        except LLMError as error:
            if not _may_be_billed(error):
                used = _NOTHING
            await self._note_failure(account, error)
            raise
        finally:
            _IS_COUNTED.reset(token)
            if reservation is not None:
                with anyio.CancelScope(shield=True), anyio.move_on_after(_SETTLING):
                    await self.quotas.settle(reservation, used)
        return response

    async def note_retry(self, _event: str, data: ProviderRetry) -> None:
        """Let all processes wait for as long as a vendor asked this one to, which retries by itself."""
        if data["retry_after"] and data.get("status_code") in (None, *_BUSY):
            _, account = self._provider(data["provider"])
            await self.quotas.pause(account, data["retry_after"])

    async def note_response(self, _event: str, data: LlmResponse) -> None:
        """Count what a module's own request used, which nothing stands before, such as one for a summary."""
        usage = data.get("usage")
        if (
            _IS_COUNTED.get()
            or usage is None
            or not self.quotas.has_budget(self.tenant)
        ):
            return
        found = Usage(
            input_tokens=_count(usage.get("input_tokens")),
            output_tokens=_count(usage.get("output_tokens")),
            total_tokens=_count(usage.get("total_tokens")),
            cost_usd=_dollars(usage.get("cost_usd")),
        )
        if _is_plausible(found):
            await self.quotas.charge(self.tenant, found)

    async def _admit(
        self, call: ModelCall, account: str, claims: Sequence[Claim]
    ) -> Reservation | None:
        """Wait until nothing holds a request back, and reserve what it may take.

        Raises:
            TenantBudgetError: a budget does not allow it.
            RateLimitError: it would wait for too long.
        """
        limits, poll = self.quotas.limits, _POLL
        deadline, is_reported = anyio.current_time() + limits.max_wait, False
        while True:
            left = await self.quotas.pause_left(account)
            refusal = None
            if not left:
                if not claims:
                    return None
                made = await self.quotas.reserve(claims)
                if isinstance(made, Reservation):
                    return made
                refusal = made
                if made.claim.window is not None and made.is_final:
                    raise TenantBudgetError(made)
            reason = _reason(account, left, refusal)
            if anyio.current_time() + left > deadline:
                longest = f"{limits.max_wait:g} s (server.limits.max_wait)"
                message = f"Not asked: {reason}; requests wait for at most {longest}"
                raise RateLimitError(
                    message, provider=call.provider, retry_after=left or None
                )
            if not is_reported:
                is_reported = True
                await self._emit(call, reason, left, refusal)
            if left:
                await self.quotas.sleep_through(left)
            else:
                await anyio.sleep(poll * uniform(0.5, 1))  # noqa: S311  # no secret
                poll = min(2 * poll, _MAX_POLL)

    async def _emit(
        self, call: ModelCall, reason: str, left: float, refusal: Refusal | None
    ) -> None:
        """Say in the session's log and trace that a request is held back."""
        hooks = self.coordinator.hooks
        if not hooks.has_handlers(PROVIDER_THROTTLE):
            return
        limit = 0 if refusal is None else int(refusal.claim.limit)
        await hooks.emit(
            PROVIDER_THROTTLE,
            ProviderThrottle(
                provider=call.provider,
                model=call.request.model,
                reason=reason,
                dimension="retry_after" if refusal is None else refusal.claim.account,
                remaining=0,
                limit=limit,
                delay=left,
            ),
        )

    async def _note_failure(self, account: str, error: LLMError) -> None:
        if error.retry_after and (
            isinstance(error, RateLimitError) or error.status_code in _BUSY
        ):
            await self.quotas.pause(account, error.retry_after)

    def _used(self, call: ModelCall, response: ChatResponse, bound: Usage) -> Usage:
        """Return what an answer used: what it says, and as much as was reserved where it says nothing."""
        usage = getattr(response, "usage", None)
        # a loop written by hand may be answered anything, and a vendor may say anything
        if not isinstance(usage, Usage) or not _is_plausible(usage):
            usage = bound
        if usage.cost_usd is not None:
            return usage
        budget = self.quotas.limits.of_tenant(self.tenant).cost_usd
        is_limited = budget.day is not None or budget.month is not None
        if bound.cost_usd is None and is_limited and not self._is_reported:
            self._is_reported = True
            report("budget.price_unknown", provider=call.provider, tenant=self.tenant)
        return attrs.evolve(usage, cost_usd=bound.cost_usd)

    async def _pause_left(self, account: str) -> float:
        return await self.quotas.pause_left(provider_account(account))

    def _provider(self, name: str) -> tuple[object, str]:
        """Return a provider of the session, and the account that its requests count against."""
        providers = self.coordinator.get("providers")
        found = providers.get(name) if isinstance(providers, Mapping) else None
        if isinstance(found, MeteredProvider):
            return found, provider_account(found.account)
        return found, provider_account(name)


def _may_be_billed(error: LLMError) -> bool:
    """Whether the vendor may have worked on a request that failed: it began an answer, or took too long for one."""
    return isinstance(error, StreamError | LLMTimeoutError)


def _count(value: JSONValue) -> int:
    return value if isinstance(value, int) else 0


def _dollars(value: JSONValue) -> Decimal | None:
    try:
        return Decimal(value) if isinstance(value, str) else None
    except InvalidOperation:
        return None


def _is_plausible(usage: Usage) -> bool:
    """Whether a use takes something; one that gave something back would be a way around a budget."""
    cost = usage.cost_usd
    return usage.total_tokens >= 0 and (
        cost is None or (cost.is_finite() and cost >= 0)
    )


def _reason(account: str, left: float, refusal: Refusal | None) -> str:
    if refusal is None:
        return f"{account} asks to wait for {left:.1f} s"
    claim = refusal.claim
    if claim.window is None:
        return f"{claim.account} has {claim.limit} requests at once"
    return f"what is left of {claim.account} a {claim.window} is reserved by others"
