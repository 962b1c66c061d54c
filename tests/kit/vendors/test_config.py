from __future__ import annotations

from decimal import Decimal

import pytest

from amplifier_kit.vendors import VendorConfig
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue


def read(**options: JSONValue) -> VendorConfig:
    return read_config(VendorConfig, options, subject="configuration")


def test_a_plan_without_options_has_the_defaults() -> None:
    config = read()

    assert (config.max_retries, config.min_retry_delay, config.max_retry_delay) == (
        5,
        1.0,
        60.0,
    )
    assert (config.timeout, config.idle_timeout, config.priority) == (600.0, 60.0, 100)
    assert (config.default_model, config.max_tokens, config.base_url) == (
        None,
        None,
        None,
    )


def test_the_other_names_of_model_and_length_are_known() -> None:
    config = read(model="grey", max_output_tokens=300)

    assert (config.default_model, config.max_tokens) == ("grey", 300)
    assert read(default_model="grey", model="grey").default_model == "grey"


def test_two_names_with_two_values_are_refused() -> None:
    with pytest.raises(
        ConfigError,
        match="model is another name of default_model; they are 'red' and 'grey'",
    ):
        read(default_model="grey", model="red")
    with pytest.raises(
        ConfigError, match="max_output_tokens is another name of max_tokens"
    ):
        read(max_tokens=1, max_output_tokens=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "max_tokens: is a whole number above 0"),
        (
            {"max_concurrent_requests": -1},
            "max_concurrent_requests: is a whole number above 0",
        ),
        ({"timeout": 0}, "timeout: is a number of seconds above 0"),
        ({"idle_timeout": -1.0}, "idle_timeout: is a number of seconds above 0"),
        ({"max_retries": -1}, "max_retries: is a whole number from 0"),
        ({"min_retry_delay": -0.5}, "min_retry_delay: is a number of seconds from 0"),
        ({"temperature": 2.5}, "temperature: is a number from 0 to 2"),
        ({"base_url": "acme"}, "base_url: is an address"),
        ({"proxy": "socks5://h"}, "proxy: is an address"),
        (
            {
                "prices": {
                    "grey": {"input_per_million": "1", "output_per_million": "-2"}
                }
            },
            "a price is 0 or more",
        ),
        (
            {
                "prices": {
                    "grey": {
                        "input_per_million": "1",
                        "output_per_million": "2",
                        "currency": "EUR",
                    }
                }
            },
            "in USD",
        ),
        ({"modle": "grey"}, "unknown; did you mean"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_value_out_of_range_is_refused(options: JSONObject, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(**options)


def test_prices_are_exact() -> None:
    config = read(
        prices={"grey": {"input_per_million": "0.1", "output_per_million": 2}}
    )

    assert config.prices["grey"].input_per_million == Decimal("0.1")
    assert config.prices["grey"].output_per_million == Decimal(2)


def test_what_may_be_secret_is_not_shown() -> None:
    config = read(
        api_key="sk-1234567890",
        base_url="https://user:pass@acme.example/v1?key=abc",
        proxy="http://me:word@proxy.example",
        extra_headers={"X-Token": "tok-123456"},
    )

    assert "acme.example/v1" in repr(config)
    for secret in ("sk-12", "pass", "abc", "word@", "tok-1"):
        assert secret not in repr(config)
