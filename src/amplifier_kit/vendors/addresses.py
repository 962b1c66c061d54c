"""Vendors' addresses: what is a sound one, what of it may be shown, where it leads."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import attrs

from amplifier_sdk.secret import WITHHELD, is_secret_name

__all__ = [
    "address_secrets",
    "check_address",
    "is_loopback",
    "join_address",
    "shown_address",
    "valid_address",
]

_SCHEMES: Final = ("http", "https")
_LONGEST_PART: Final = 63


def check_address(address: str, name: str) -> str:
    """Return the address when a client can use it.

    Args:
        address: what was configured.
        name: where, for the message.

    Raises:
        ValueError: it is no http or https address with a host.
    """
    try:
        parts = urlsplit(address)
        is_sound = (
            parts.scheme in _SCHEMES
            and _is_host(parts.hostname or "")
            and not parts.fragment
        )
        _ = parts.port  # raises when it is none
    except ValueError:
        is_sound = False
    if not is_sound or not address.isprintable() or " " in address:
        raise ValueError(
            f"{name} is an address such as https://host/path; got {shown_address(address)!r}"
        )
    return address


def valid_address(
    _: object, attribute: attrs.Attribute[str | None], value: str | None
) -> None:
    """Refuse, as the validator of a field, an address that no client can use."""
    if value is not None:
        check_address(value, attribute.name)


def _is_host(host: str) -> bool:
    """Tell whether a host may be one: a name's parts have 1 to 63 characters, or nothing can look it up."""
    return all(
        0 < len(part) <= _LONGEST_PART for part in host.removesuffix(".").split(".")
    )


def shown_address(address: str) -> str:
    """Return the address without what may be secret in it: a user, a password, a query."""
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        netloc = host
        if "@" in parts.netloc:
            netloc = f"{WITHHELD}@{host}"
        return urlunsplit(
            SplitResult(
                parts.scheme, netloc, parts.path, WITHHELD if parts.query else "", ""
            )
        )
    except ValueError:
        return WITHHELD


def address_secrets(address: str) -> Iterator[str]:
    """Yield what is secret in a sound address, in all forms in which a server may say it: a password, a key."""
    parts = urlsplit(address)
    if parts.password:
        yield parts.password
        yield unquote(parts.password)
        # the form in which the header of basic authentication carries it
        yield b64encode(unquote(f"{parts.username}:{parts.password}").encode()).decode()
    for field in parts.query.split("&"):
        name, _, value = field.partition("=")
        if is_secret_name(unquote(name)):
            yield value
            yield unquote(value)


def is_loopback(address: str) -> bool:
    """Tell whether the address is this machine."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def join_address(base: str, path: str) -> str:
    """Put a path behind an address; the queries of both stay."""
    parts, added = urlsplit(base), urlsplit(path)
    whole = parts.path
    if added.path:
        whole = f"{parts.path.rstrip('/')}/{added.path.lstrip('/')}"
    query = "&".join(filter(None, (parts.query, added.query)))
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, whole, query, ""))
