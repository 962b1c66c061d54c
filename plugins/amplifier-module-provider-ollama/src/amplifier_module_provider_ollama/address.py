"""The server's address in the forms that Ollama takes: `OLLAMA_HOST` need not be a URL."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from amplifier_kit.vendors.addresses import check_address

__all__ = ["PUBLIC_URL", "server_url"]

PUBLIC_URL: Final = "http://127.0.0.1:11434"
"""Where a server listens that was started without settings."""

_PORTS: Final = {"http": 80, "https": 443}
_PORT: Final = 11434


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
    if "@" in parts.netloc:
        user = f"{parts.netloc.rpartition('@')[0]}@"
    else:
        user = ""
    if port is None:
        if separator:
            port = _PORTS[scheme]
        else:
            port = _PORT
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
