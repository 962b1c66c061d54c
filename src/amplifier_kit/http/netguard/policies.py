"""What may be fetched: domains, ports and addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, TypeAlias

import attrs

from amplifier_kit.http.netguard.addresses import Address, held_address, refusal_of
from amplifier_kit.http.netguard.errors import (
    AddressRefusedError,
    DomainRefusedError,
    PortRefusedError,
)
from amplifier_kit.http.netguard.urls import WebUrl, address_of, read_host

__all__ = ["AddressRange", "DomainPattern", "NetPolicy"]

_Network: TypeAlias = IPv4Network | IPv6Network

_WEB_PORTS: Final = frozenset({80, 443})
_FIRST_FREE_PORT: Final = 1024
# Above 1023, what browsers do not open either (the fetch standard's list), and data stores that obey plain text.
_OTHER_PORTS: Final = frozenset(
    {
        1719,
        1720,
        1723,
        2049,
        2375,
        2379,
        3306,
        3659,
        4045,
        4190,
        5060,
        5061,
        5432,
        5984,
        6000,
        6379,
        6566,
    }
    | {6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 10080, 11211, 27017}
)
_BRACKETED_RANGE: Final = re.compile(r"\[([^\[\]]+)\](?::([0-9]+))?", re.ASCII)
_RANGE_WITH_PORT: Final = re.compile(r"([^:]+):([0-9]+)", re.ASCII)


@attrs.frozen
class DomainPattern:
    """A domain and all below it; `*.` before it leaves the domain itself out.

    An IP address is itself alone, also where an IPv6 address holds it.
    """

    host: str
    below_only: bool = False

    @classmethod
    def read(cls, text: str) -> DomainPattern:
        """Read a pattern as it stands in a configuration.

        Raises:
            ValueError: it can match no host, such as one with a scheme or a path.
        """
        below_only = text.startswith("*.")
        in_brackets = text.startswith("[") and text.endswith("]")
        try:
            host = read_host(
                text[2:] if below_only else text[1:-1] if in_brackets else text
            )
            if below_only and address_of(host) is not None:
                raise ValueError("is an IP address, which has nothing below it")
            return cls(host, below_only)
        except ValueError as error:
            raise ValueError(
                f"{text!r} {error}; write a domain as example.com or *.example.com"
            ) from error

    def matches(self, url: WebUrl) -> bool:
        """Tell whether an address's host is meant, comparing label by label."""
        if self.host in (url.host, _held_host(url)):
            # equal hosts: `*.example.com` means what is below, and not the domain
            # itself
            return not self.below_only
        # with the dot: `evilexample.com` ends like `example.com` and is another's
        return url.address is None and url.host.endswith(f".{self.host}")


@attrs.frozen
class AddressRange:
    """Addresses that may be connected to although they are not public; with a port, on that port alone."""

    network: _Network
    port: int | None = None

    @classmethod
    def read(cls, text: str) -> AddressRange:
        """Read a range as it stands in a configuration: `10.1.0.0/16`, `127.0.0.1:8080`, `[::1]:8080`.

        Raises:
            ValueError: it is none.
        """
        match = _BRACKETED_RANGE.fullmatch(text) or _RANGE_WITH_PORT.fullmatch(text)
        if match is not None:
            host, port = match.groups()
        else:
            host, port = (text, None)
        try:
            if port is not None and not 0 < int(port[:6]) < 65536:
                raise ValueError("the port is a number from 1 to 65535")
            return cls(ip_network(host), None if port is None else int(port))
        except ValueError as error:
            raise ValueError(
                f"{text!r} is no range of addresses ({error}); write 10.1.0.0/16, 127.0.0.1:8080 or [::1]:8080"
            ) from error

    def holds(self, address: Address, port: int) -> bool:
        """Tell whether an address and a port are in the range."""
        return address in self.network and self.port in (None, port)


@attrs.frozen(kw_only=True)
class NetPolicy:
    """What may be fetched. Whatever it says, only what is public may be, but for `allowed_addresses`.

    Args:
        allowed_domains: the only ones; empty means all.
        blocked_domains: never, also where `allowed_domains` has them.
        allowed_ports: the only ones; `None` means 80, 443 and those from 1024 that no other service is known for.
        allowed_addresses: addresses that may be connected to although they are not public.
    """

    allowed_domains: Sequence[DomainPattern] = ()
    blocked_domains: Sequence[DomainPattern] = ()
    allowed_ports: Sequence[int] | None = None
    allowed_addresses: Sequence[AddressRange] = ()

    def check_url(self, url: WebUrl) -> None:
        """Refuse an address by what it says itself; names are not looked up.

        Raises:
            DomainRefusedError: its domain is blocked, or not among those allowed.
            PortRefusedError: its port is not for the web.
            AddressRefusedError: its host is an IP address that is not public.
        """
        # first, since what is blocked stays so whatever is allowed
        if any(pattern.matches(url) for pattern in self.blocked_domains):
            raise DomainRefusedError(str(url), f"the configuration blocks {url.host}")
        if self.allowed_domains and not any(
            pattern.matches(url) for pattern in self.allowed_domains
        ):
            raise DomainRefusedError(
                str(url),
                f"{url.host} is not among the domains that the configuration allows",
            )
        if not self._allows_port(url.port):
            raise PortRefusedError(
                str(url),
                f"port {url.port} is not among those that pages are fetched from",
            )
        # a name is checked when it is looked up, by the addresses that are
        # connected to
        if url.address is not None:
            self.check_address(url, url.address)

    def check_address(self, url: WebUrl, address: Address) -> None:
        """Refuse an address that a web address's host is or leads to.

        Raises:
            AddressRefusedError: it is not public; says what it is for.
        """
        reason = refusal_of(address)
        if reason is None or any(
            entry.holds(address, url.port) for entry in self.allowed_addresses
        ):
            return
        leads = "leads to"
        if url.address is not None:
            leads = "is"
        raise AddressRefusedError(
            str(url),
            f"the host {leads} an address that is not public ({reason}); only public ones are fetched",
        )

    def _allows_port(self, port: int) -> bool:
        if self.allowed_ports is not None:
            return port in self.allowed_ports
        return port in _WEB_PORTS or (
            port >= _FIRST_FREE_PORT and port not in _OTHER_PORTS
        )


def _held_host(url: WebUrl) -> str:
    """Return the IPv4 address that a host of IPv6 leads to; empty for all else."""
    held = None
    if isinstance(url.address, IPv6Address):
        held = held_address(url.address)
    if held is None:
        return ""
    return str(held)
