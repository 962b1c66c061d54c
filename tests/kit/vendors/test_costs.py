from __future__ import annotations

import sys
from collections.abc import Mapping
from decimal import Decimal

import pytest

from amplifier_kit.vendors import costs
from amplifier_kit.vendors.costs import Costs, cost_by_prices
from amplifier_sdk.chat import Pricing, Usage

USAGE = Usage(
    input_tokens=1_000,
    output_tokens=100,
    total_tokens=1_100,
    cache_read_tokens=400,
    cache_write_tokens=100,
)
PRICING = Pricing(
    input_per_million=Decimal(3),
    output_per_million=Decimal(15),
    cache_read_per_million=Decimal("0.3"),
    cache_write_per_million=Decimal("3.75"),
)


def account(
    prices: Mapping[str, Pricing] | None = None,
    vendor: str | None = None,
    address: str = "https://x.example",
) -> Costs:
    return Costs("acme", prices or {}, vendor, address)


def test_each_kind_of_token_has_its_price() -> None:
    cost = cost_by_prices(PRICING, USAGE)

    assert (
        cost
        == (
            500 * Decimal(3)
            + 400 * Decimal("0.3")
            + 100 * Decimal("3.75")
            + 100 * Decimal(15)
        )
        / 1_000_000
    )


def test_tokens_of_cache_without_price_cost_what_input_costs() -> None:
    plain = Pricing(input_per_million=Decimal(3), output_per_million=Decimal(15))

    assert (
        cost_by_prices(plain, USAGE)
        == (1_000 * Decimal(3) + 100 * Decimal(15)) / 1_000_000
    )
    assert cost_by_prices(
        plain, Usage(input_tokens=5, output_tokens=0, total_tokens=5)
    ) == Decimal("0.000015")


async def test_the_users_price_goes_before_the_table() -> None:
    money = account({"gpt-4o": PRICING}, "openai")

    priced = await money.add("gpt-4o", USAGE)

    assert priced.cost_usd == cost_by_prices(PRICING, USAGE)
    assert money.contribution() == {"provider": "acme", "usd": str(priced.cost_usd)}


async def test_the_table_knows_vendors_by_name_and_by_address() -> None:
    by_name = await account(vendor="openai").add("gpt-4o", USAGE)
    by_address = await account(address="https://api.openai.com/v1").add("gpt-4o", USAGE)

    assert by_name.cost_usd == by_address.cost_usd
    assert by_name.cost_usd is not None
    assert by_name.cost_usd > 0


@pytest.mark.parametrize(
    ("vendor", "address", "model"),
    [
        ("openai", "https://x.example", "no-such-model"),
        (None, "http://127.0.0.1:8080/v1", "gpt-4o"),
    ],
    ids=["unknown model", "unknown vendor"],
)
async def test_an_unknown_price_is_no_price(
    vendor: str | None, address: str, model: str
) -> None:
    money = account(vendor=vendor, address=address)

    assert await money.add(model, USAGE) is USAGE
    assert money.contribution() == {"provider": "acme", "usd": "0", "unpriced": 1}


async def test_what_the_vendor_says_goes_before_everything() -> None:
    said = Usage(
        input_tokens=1, output_tokens=1, total_tokens=2, cost_usd=Decimal("0.5")
    )

    assert (await account({"grey": PRICING}).add("grey", said)).cost_usd == Decimal(
        "0.5"
    )


async def test_counts_that_contradict_each_other_have_no_price() -> None:
    odd = Usage(
        input_tokens=10,
        output_tokens=1,
        total_tokens=11,
        cache_read_tokens=50,
        cache_write_tokens=50,
    )

    assert (
        await account(vendor="anthropic").add("claude-sonnet-4-5", odd)
    ).cost_usd is None


def test_nothing_asked_is_nothing_to_tell() -> None:
    assert account().contribution() is None


async def test_without_the_table_only_the_users_prices_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr(costs, "_loaded", {})
    money = account({"grey": PRICING}, "openai")

    assert (await money.add("gpt-4o", USAGE)).cost_usd is None
    assert (await money.add("gpt-4o", USAGE)).cost_usd is None
    assert (await money.add("grey", USAGE)).cost_usd is not None
