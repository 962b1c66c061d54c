"""The module's configuration: which server and model, and how the model is run.

The server's address has the forms that Ollama takes: `OLLAMA_HOST` need not be a URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from math import inf
from typing import Final
from urllib.parse import urlsplit

import attrs

from amplifier_kit.vendors import VendorConfig
from amplifier_kit.vendors.addresses import check_address, shown_address
from amplifier_sdk.bounds import amount, seconds
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["PUBLIC_URL", "OllamaConfig", "server_url"]

PUBLIC_URL: Final = "http://127.0.0.1:11434"
"""Where a server listens that was started without settings."""
_PORTS: Final = {"http": 80, "https": 443}
_PORT: Final = 11434

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


def server_url(host: str) -> str:
    """Return the URL of the server that a host names.

    A host is a name or an address, with a port or without, with a scheme or without, with a path or without, or a
    port alone (`:8080`). Without a scheme the port is 11434. An address that a server listens on and that nobody
    can call (`0.0.0.0`, `[::]`) means this machine. Quotes and blanks around it are taken off.

    Raises:
        ValueError: it is none of these.
    """
    text = host.strip().strip("\"'").strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    if (
        scheme not in _PORTS
        or any(character.isspace() for character in rest)
        or set("?#") & set(rest)
    ):
        raise ValueError(
            "a host such as localhost:11434, or an http or https address of a server"
        )
    parts = urlsplit(f"{scheme}://{_bracketed(rest)}")
    name, port = _name(parts.hostname), parts.port
    user = ""
    if "@" in parts.netloc:
        user = f"{parts.netloc.rpartition('@')[0]}@"
    if port is None:
        port = _PORT
        if separator:
            port = _PORTS[scheme]
    path = parts.path.strip("/")
    return check_address(
        f"{scheme}://{user}{name}:{port}" + (f"/{path}" if path else ""), "the host"
    )


def _bracketed(rest: str) -> str:
    """Put an IPv6 address that stands there bare into brackets."""
    try:
        if isinstance(ip_address(rest), IPv6Address):
            return f"[{rest}]"
        return rest
    except ValueError:
        return rest


def _name(host: str | None) -> str:
    if not host:
        return "127.0.0.1"
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.is_unspecified:
            return "[::1]"
        return f"[{host}]"
    if address.is_unspecified:
        return "127.0.0.1"
    return host
