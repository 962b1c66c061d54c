"""What answers cost: by the user's prices, else by the table of `genai-prices` where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from types import ModuleType
from typing import Final

import attrs
from anyio import to_thread

from amplifier_sdk.chat import Pricing, Usage
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Costs", "cost_by_prices", "price_table"]

_MILLION: Final = 1_000_000
_loaded: Final[dict[str, ModuleType | None]] = {}


@attrs.define(eq=False)
class Costs:
    """Prices a provider's answers and adds them up.

    Args:
        name: the provider's name.
        prices: the user's, by model.
        vendor: how the table calls the vendor; `None` lets it look for `address`.
        address: the vendor's address.
    """

    name: str
    prices: Mapping[str, Pricing]
    vendor: str | None
    address: str = attrs.field(repr=False)
    _total: Decimal = attrs.field(default=Decimal(0), init=False)
    _priced: int = attrs.field(default=0, init=False)
    _unpriced: int = attrs.field(default=0, init=False)

    async def add(self, model: str, usage: Usage) -> Usage:
        """Count one answer in, and return its usage with the cost; a model whose price nobody knows has none."""
        cost = (
            usage.cost_usd
            if usage.cost_usd is not None
            else await self.price(model, usage)
        )
        if cost is None:
            self._unpriced += 1
            return usage
        self._total += cost
        self._priced += 1
        return attrs.evolve(usage, cost_usd=cost)

    def contribution(self) -> JSONObject | None:
        """Say for the channel `session.cost` what the answers cost; `unpriced` counts those without a known price."""
        if not self._priced and not self._unpriced:
            return None
        said: JSONObject = {"provider": self.name, "usd": str(self._total)}
        if self._unpriced:
            said["unpriced"] = self._unpriced
        return said

    async def price(self, model: str, usage: Usage) -> Decimal | None:
        """Return what a use costs; `None` for a model whose price nobody knows."""
        pricing = self.prices.get(model)
        if pricing is not None:
            return cost_by_prices(pricing, usage)
        if _loaded:
            table = price_table()
        else:
            table = await to_thread.run_sync(price_table)
        if table is None:
            return None
        counts = table.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        where = {"provider_api_url": self.address}
        if self.vendor is not None:
            where = {"provider_id": self.vendor}
        try:
            price: Decimal = table.calc_price(
                counts, model_ref=model, **where
            ).total_price
        except (LookupError, ValueError):
            # the table has no such model, or the counts contradict each other
            return None
        return price


def cost_by_prices(pricing: Pricing, usage: Usage) -> Decimal:
    """Return the cost; what is read from a cache or written to one costs like other input where it has no own price."""
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    plain = max(0, usage.input_tokens - read - written)
    figures = (
        (plain, pricing.input_per_million),
        (read, _either(pricing.cache_read_per_million, pricing.input_per_million)),
        (written, _either(pricing.cache_write_per_million, pricing.input_per_million)),
        (usage.output_tokens, pricing.output_per_million),
    )
    return sum((tokens * price for tokens, price in figures), Decimal(0)) / _MILLION


def _either(price: Decimal | None, other: Decimal) -> Decimal:
    if price is None:
        return other
    return price


def price_table() -> ModuleType | None:
    """Load the table, once: half a second and 30 MB; `None` without the extra `amplifier[prices]`."""
    if "table" not in _loaded:
        try:
            _loaded["table"] = import_module("genai_prices")
        except ModuleNotFoundError:
            _loaded["table"] = None
    return _loaded["table"]
