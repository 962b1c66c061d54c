"""The options that every vendor's provider has."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import attrs

from amplifier_kit.vendors.addresses import shown_address, valid_address
from amplifier_sdk.bounds import amount, count, number, pause, seconds
from amplifier_sdk.chat import Pricing
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import Secret

__all__ = ["VendorConfig"]


def _prices(
    _: object,
    attribute: attrs.Attribute[Mapping[str, Pricing]],
    value: Mapping[str, Pricing],
) -> None:
    for model, pricing in value.items():
        if pricing.currency != "USD":
            raise ValueError(
                f"{attribute.name}: costs are counted in USD; {model!r} has {pricing.currency!r}"
            )
        figures = (
            value
            for value in attrs.astuple(pricing, recurse=False)
            if isinstance(value, Decimal)
        )
        if any(not figure.is_finite() or figure < 0 for figure in figures):
            raise ValueError(
                f"{attribute.name}: a price is 0 or more; {model!r} has {pricing!r}"
            )


def _shown(address: str | None) -> str:
    return repr(address and shown_address(address))


@attrs.frozen(kw_only=True)
class VendorConfig:
    """What `config` of the plan may hold for any vendor; a vendor's class adds its own options.

    Args:
        api_key: the key; default the vendor's environment variable.
        base_url: the vendor's address; default its environment variable, else its public address.
        default_model: the model of requests that name none.
        model: another name of `default_model`.
        max_tokens: the longest answer, in tokens, of requests that name none; default the vendor's.
        max_output_tokens: another name of `max_tokens`.
        temperature: of requests that name none; default the vendor's.
        timeout: seconds that one try may take from its sending to the end of the answer; a request's own goes
            before. The time in which the reader of the answer holds it back does not count.
        idle_timeout: seconds of silence after which a try is given up.
        priority: a loop that chooses among providers takes the lowest.
        max_retries: how often a request is sent again after a failure that may pass.
        min_retry_delay: seconds before the first of them; each further wait is twice as long.
        max_retry_delay: the longest wait in seconds. A request for a longer one is not retried.
        retry_jitter: spread each wait, so that many clients do not return at once.
        max_concurrent_requests: requests that are under way at once; further ones wait. Default without limit.
        media: the media types that the model takes, in place of what is known of it; `[]` for text alone.
        degrade: let a text stand for what a prompt shows and the model does not take, instead of refusing it.
        max_images: images of a request; texts stand in place of the oldest of more. 0 for models that cannot see.
        max_image_bytes: bytes that the images of a request have together, as base64; the newest always goes.
        prices: prices in US dollars per million tokens, by model; they go before the table's.
        extra_headers: headers that every request has beside the provider's own.
        extra_request_params: fields that every request's body has; they go before the provider's own.
        proxy: the address of an HTTP proxy. Proxies that environment variables name are not used.
        raw: let the events `llm:request` and `llm:response` carry what was sent and received.

    Raises:
        ValueError: a value is out of its range, or two names of one option differ.
    """

    api_key: Secret | None = None
    base_url: str | None = attrs.field(
        default=None, validator=valid_address, repr=_shown
    )
    model: str | None = None
    default_model: str | None = attrs.field(
        default=attrs.Factory(lambda self: self.model, takes_self=True)
    )
    max_output_tokens: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(count)
    )
    max_tokens: int | None = attrs.field(
        default=attrs.Factory(lambda self: self.max_output_tokens, takes_self=True),
        validator=attrs.validators.optional(count),
    )
    temperature: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(number(0, 2))
    )
    timeout: float = attrs.field(default=600.0, validator=seconds)
    idle_timeout: float = attrs.field(default=60.0, validator=seconds)
    priority: float = 100
    max_retries: int = attrs.field(default=5, validator=amount)
    min_retry_delay: float = attrs.field(default=1.0, validator=pause)
    max_retry_delay: float = attrs.field(default=60.0, validator=pause)
    retry_jitter: bool = True
    max_concurrent_requests: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(count)
    )
    media: tuple[str, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(tuple[str, ...])
    )
    degrade: bool = False
    max_images: int = attrs.field(default=20, validator=amount)
    max_image_bytes: int = attrs.field(default=20_000_000, validator=count)
    prices: Mapping[str, Pricing] = attrs.field(factory=dict, validator=_prices)
    extra_headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    extra_request_params: Mapping[str, JSONValue] = attrs.field(factory=dict)
    proxy: str | None = attrs.field(default=None, validator=valid_address, repr=_shown)
    raw: bool = False

    def __attrs_post_init__(self) -> None:
        for name, other in (
            ("default_model", "model"),
            ("max_tokens", "max_output_tokens"),
        ):
            value, same = getattr(self, name), getattr(self, other)
            if same is not None and value != same:
                raise ValueError(
                    f"{other} is another name of {name}; they are {same!r} and {value!r}: give one"
                )
