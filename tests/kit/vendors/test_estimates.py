"""What a request uses at most, before it is sent, and what it counts against."""

from __future__ import annotations

from decimal import Decimal

import pytest

from amplifier.testing import TestCoordinator
from amplifier_sdk.chat import ChatRequest, ToolSpec
from amplifier_sdk.contracts import MeteredProvider
from amplifier_sdk.errors import ConfigurationError
from amplifier_sdk.jsontypes import JSONObject
from tests.kit.vendors.parrot import ParrotProvider, ask, parrot, speaking
from tests.kit.vendors.test_provider import Mute

PRICE: JSONObject = {
    "input_per_million": "1",
    "output_per_million": "10",
    "cache_write_per_million": "2",
}


async def test_request_uses_its_bytes_and_the_longest_answer_at_most() -> None:
    provider, _ = parrot(speaking(), max_tokens=100, prices={"grey": PRICE})
    request = ask("h\u00e9llo", "you")
    bound = await provider.max_usage(request)
    answer = await provider.complete(request)

    assert isinstance(provider, MeteredProvider)
    assert bound.output_tokens == 100
    assert len("h\u00e9llo you".encode()) <= bound.input_tokens < 100
    assert bound.total_tokens == bound.input_tokens + 100
    # all of it may be written to the vendor's cache
    assert bound.cost_usd == (2 * bound.input_tokens + 1000) / Decimal(1_000_000)
    assert answer.usage is not None
    assert answer.usage.cost_usd is not None
    assert answer.usage.cost_usd < bound.cost_usd


async def test_tools_are_sent_as_well() -> None:
    provider, _ = parrot(speaking(), max_tokens=100)
    plain = await provider.max_usage(ask())
    tool = ToolSpec(name="work", description="x" * 500, parameters={"a": "b" * 500})
    request = ChatRequest(messages=ask().messages, tools=[tool])
    bound = await provider.max_usage(request)

    assert bound.input_tokens >= plain.input_tokens + 1000


@pytest.mark.parametrize(("own", "output"), [(7, 7), (None, 100)])
async def test_limit_of_the_request_goes_before_the_configuration(
    own: int | None, output: int
) -> None:
    provider, _ = parrot(speaking(), max_tokens=100)
    request = ChatRequest(messages=ask().messages, max_output_tokens=own)

    assert (await provider.max_usage(request)).output_tokens == output


async def test_unknown_price_is_no_cost() -> None:
    provider, _ = parrot(speaking())
    bound = await provider.max_usage(ask())

    assert bound.cost_usd is None
    assert bound.output_tokens > 1000


async def test_without_a_model_there_is_no_bound() -> None:
    provider, _ = parrot(kind=Mute, base_url="https://parrot.example")

    with pytest.raises(ConfigurationError):
        await provider.max_usage(ask())


def test_account_is_that_of_a_key_at_an_address_and_shows_neither() -> None:
    def account(key: str, url: str) -> str:
        provider, _ = parrot(coordinator=TestCoordinator(), api_key=key, base_url=url)
        assert isinstance(provider, ParrotProvider)
        return provider.account

    here = "https://parrot.example/v1"
    accounts = [
        account("sk-parrot-0000000001", here),
        account("sk-parrot-0000000001", here),
        account("sk-parrot-0000000002", here),
        account("sk-parrot-0000000001", "https://other.example/v1"),
    ]

    assert accounts[0] == accounts[1]
    assert len(set(accounts)) == 3
    assert all(each.startswith("parrot-") for each in accounts)
    assert not any("0000" in each or "example" in each for each in accounts)
