"""The module's configuration: which server and model, and how the model is run."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

import attrs

from amplifier_kit.vendors import VendorConfig
from amplifier_kit.vendors.addresses import shown_address
from amplifier_module_provider_ollama.address import server_url
from amplifier_sdk.bounds import amount, seconds
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["OllamaConfig"]

_SMALLEST_WINDOW: Final = 4096
"""What a server gives on a machine with little memory when nothing is asked for."""

_LONGEST_ANSWER: Final = 4096

_SETTINGS: Final = {
    "num_ctx": "num_ctx",
    "num_predict": "max_tokens",
    "temperature": "temperature",
}
"""The options of a model that are settings of the module, by their names there."""


def _url(host: str | None) -> str | None:
    if host is None:
        return None
    return server_url(host)


def _shown(url: str | None) -> str:
    return repr(url and shown_address(url))


def _keep_alive(
    _: object, attribute: attrs.Attribute[float | str | None], value: object
) -> None:
    if isinstance(value, bool) or (
        isinstance(value, (int, float)) and not -inf < value < inf
    ):
        raise ValueError(
            f"{attribute.name} is a number of seconds or a text such as '10m'; got {value!r}"
        )


def _options(
    _: object,
    attribute: attrs.Attribute[Mapping[str, JSONValue]],
    value: Mapping[str, JSONValue],
) -> None:
    for name, setting in _SETTINGS.items():
        if name in value:
            raise ValueError(
                f"{attribute.name}: {name!r} has a setting of its own, {setting!r}"
            )


@attrs.frozen(kw_only=True)
class OllamaConfig(VendorConfig):
    """What `config` of the plan may hold, beside what every vendor's provider has.

    Args:
        base_url: the server; default `OLLAMA_HOST`, else `http://127.0.0.1:11434`. As in `OLLAMA_HOST`, a host with
            or without a port is enough.
        host: another name of `base_url`.
        max_tokens: of answers, where the request names no limit; default 4096, at most half of `num_ctx`.
        max_retries: how often a request is sent again after a failure that may pass; default 2, since a server that
            nobody started is not there in half a minute either.
        num_ctx: tokens of context that the server loads the model with; 0 leaves it to the server. Loading it anew
            with another number takes seconds.
        options: further options of the model (`seed`, `top_k`, `min_p`, `num_gpu` …), as they stand in Ollama's
            Modelfile reference.
        think: whether the model thinks before it answers: a boolean, or one of the model's own levels. Default the
            model's own; `reasoning_effort` of a request goes before.
        enable_thinking: another name of `think`.
        keep_alive: how long the model stays loaded after an answer: seconds, or a text such as `10m`; 0 unloads it,
            a number below 0 keeps it. Default the server's five minutes.
        auto_pull: let the server fetch a model that it does not have, before the answer.
        pull_timeout: seconds that this may take.
        truncate: let the server leave out the beginning of a request that is longer than `num_ctx`, without a word;
            default an error with the figures.
    """

    host: str | None = attrs.field(default=None, converter=_url, repr=_shown)
    base_url: str | None = attrs.field(
        default=attrs.Factory(lambda self: self.host, takes_self=True),
        converter=_url,
        repr=_shown,
    )
    max_retries: int = attrs.field(
        default=2, validator=attrs.fields(VendorConfig).max_retries.validator
    )
    num_ctx: int = attrs.field(default=8192, validator=amount)
    options: Mapping[str, JSONValue] = attrs.field(factory=dict, validator=_options)
    enable_thinking: bool | None = None
    think: bool | str | None = attrs.field(
        default=attrs.Factory(lambda self: self.enable_thinking, takes_self=True)
    )
    keep_alive: float | str | None = attrs.field(default=None, validator=_keep_alive)
    auto_pull: bool = False
    pull_timeout: float = attrs.field(default=3600.0, validator=seconds)
    truncate: bool = False

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for name, other in (("base_url", "host"), ("think", "enable_thinking")):
            value, same = getattr(self, name), getattr(self, other)
            if same is not None and value != same:
                raise ValueError(
                    f"{other} is another name of {name}, and they differ: give one"
                )

    @property
    def window(self) -> int:
        """Tokens of context that a request and its answer have; what the server gives at least if it decides."""
        return self.num_ctx or _SMALLEST_WINDOW

    @property
    def longest_answer(self) -> int:
        """Tokens of an answer whose request names no limit."""
        return self.max_tokens or min(_LONGEST_ANSWER, self.window // 2)
