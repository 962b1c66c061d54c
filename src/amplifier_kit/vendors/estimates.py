"""What a request uses at most, before it is sent, and what it counts against."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_kit.compaction.meters import most_of_text, most_tokens
from amplifier_sdk.chat import ChatRequest, Usage

if TYPE_CHECKING:
    from amplifier_kit.vendors.provider import VendorProvider

__all__ = ["account_of", "max_usage_of"]

_MAX_ANSWER: Final = 32_000
"""The tokens of an answer that nothing limits."""


def account_of(provider: VendorProvider) -> str:
    """Return what a vendor limits together: those with one key at one address."""
    key = "" if provider.key is None else provider.key.reveal()
    # too short to find a key by it, and long enough to tell an operator's keys apart
    mark = sha256(f"{provider.base_url}\0{key}".encode()).hexdigest()[:8]
    return f"{provider.name}-{mark}"


async def max_usage_of(provider: VendorProvider, request: ChatRequest) -> Usage:
    """Return the tokens that a request uses at most, and what they cost where the model's price is known."""
    sent = sum(most_tokens(message.to_dict()) for message in request.messages)
    sent += sum(_tool_tokens(request))
    limits = (
        request.max_output_tokens,
        provider.config.max_tokens,
        provider.get_info().defaults.get("max_output_tokens"),
    )
    answer = next((each for each in limits if isinstance(each, int)), _MAX_ANSWER)
    plain = Usage(input_tokens=sent, output_tokens=answer, total_tokens=sent + answer)
    # a vendor may write all of it to its cache, which costs more
    cached = attrs.evolve(plain, cache_write_tokens=sent)
    model = provider.model_of(request)
    costs = [await provider.costs.price(model, usage) for usage in (plain, cached)]
    known: list[Decimal] = [cost for cost in costs if cost is not None]
    return attrs.evolve(plain, cost_usd=max(known, default=None))


def _tool_tokens(request: ChatRequest) -> Iterator[int]:
    for tool in request.tools or ():
        yield most_of_text(f"{tool.name}{tool.description}{tool.parameters}")
