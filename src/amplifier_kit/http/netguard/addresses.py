"""Which IP addresses are public, that is, may be connected to on behalf of a model.

The standard library's `is_global` is no guard: it is true for multicast, for the site-local block and for IPv6 forms
that lead to IPv4 addresses inside. Here an IPv6 address is refused unless it is in the one block that IANA gives out
to the internet, and an IPv4 address that an IPv6 one holds counts as itself.

Source: the IANA special-purpose address registries for IPv4 and IPv6.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, TypeAlias

__all__ = ["Address", "held_address", "refusal_of"]

Address: TypeAlias = IPv4Address | IPv6Address

_IPV4: Final[Sequence[tuple[IPv4Network, str]]] = [
    (IPv4Network(block), words)
    for block, words in (
        ("0.0.0.0/8", "this host"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a carrier's private network"),
        ("127.0.0.0/8", "this machine"),
        ("168.63.129.16/32", "a cloud's own service"),
        ("169.254.0.0/16", "the local link, where clouds have their metadata"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.31.196.0/24", "reserved for name servers"),
        ("192.52.193.0/24", "reserved for multicast tunnels"),
        ("192.88.99.0/24", "a tunnel into IPv6"),
        ("192.168.0.0/16", "a private network"),
        ("192.175.48.0/24", "reserved for name servers"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
]

_GIVEN_OUT: Final = IPv6Network("2000::/3")
_NOT_GIVEN_OUT: Final[Sequence[tuple[IPv6Network, str]]] = [
    (IPv6Network(block), words)
    for block, words in (
        ("2001::/23", "reserved for protocols and tunnels"),
        ("2001:db8::/32", "reserved for documentation"),
        ("2002::/16", "a tunnel to an IPv4 address"),
        ("2620:4f:8000::/48", "reserved for name servers"),
        ("3ffe::/16", "no longer in use"),
        ("3fff::/20", "reserved for documentation"),
    )
]

_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOOPBACK: Final = IPv6Address("::1")
_IPV4_BITS: Final = 0xFFFF_FFFF
# ISATAP: the lower half of the address is 0000:5efe or 0200:5efe and an IPv4 address.
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def refusal_of(address: Address) -> str | None:
    """Say why an address is not public; `None` when it is."""
    if isinstance(address, IPv4Address):
        return next((words for block, words in _IPV4 if address in block), None)
    # a zone names an interface of this machine
    if address.scope_id is not None:
        return "the local link"
    held = held_address(address)
    # what an IPv6 form holds is where the connection ends up, so that is
    # evaluated
    if held is not None:
        return refusal_of(held)
    if address == _LOOPBACK:
        return "this machine"
    if address not in _GIVEN_OUT:
        return "not part of the public internet"
    return next(
        (words for block, words in _NOT_GIVEN_OUT if address in block), None
    ) or _tunnelled(address)


def held_address(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that a connection to the address would reach through the system or a translator."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & _IPV4_BITS)
    return None


def _tunnelled(address: IPv6Address) -> str | None:
    number = int(address)
    is_tunnel = (number >> 32) & _IPV4_BITS in _ISATAP
    if is_tunnel:
        return refusal_of(IPv4Address(number & _IPV4_BITS))
    return None
