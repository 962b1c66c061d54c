"""No connection goes to an address that is not public, whatever an address, a name or a redirect says."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import httpcore2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.http.netguard import NetPolicy, WebError, read_url, refusal_of
from amplifier_kit.http.netguard.errors import (
    AddressRefusedError,
    HostUnreachableError,
    RedirectError,
)
from tests.kit.http.netguard.hostile import INSIDE_NAMES, PUBLIC, REFUSED
from tests.kit.http.netguard.networks import Network, page


async def _is_refused(network: Network, url: str) -> bool:
    try:
        async with network.fetcher().get(read_url(url)):
            return False
    except WebError as error:
        return bool(error.message) and "\n" not in error.message


async def test_hostile_addresses_are_refused_without_a_connection(
    network: Network,
) -> None:
    assert len(set(REFUSED)) >= 300

    assert [url for url in REFUSED if not await _is_refused(network, url)] == []
    assert network.connected == []


@pytest.mark.parametrize("name", INSIDE_NAMES)
async def test_name_that_leads_inside_is_refused_without_connection(
    network: Network, name: str
) -> None:
    network.hosts |= INSIDE_NAMES

    assert await _is_refused(network, f"http://{name}/")
    assert network.connected == []


async def test_a_redirect_to_a_hostile_address_is_not_followed(
    network: Network,
) -> None:
    network.hosts |= INSIDE_NAMES
    followed = []
    # What stands in a header has no line end, and what is relative leads to the same host.
    targets = [url for url in REFUSED if url.isprintable() and "://" in url] + [
        f"http://{name}/" for name in INSIDE_NAMES
    ]
    for url in targets:
        network.connected.clear()
        network.answers = [[page(b"", "302 Found", {"Location": url})]]
        if not await _is_refused(
            network, "https://example.com/"
        ) or network.connected != [("93.184.215.14", 443)]:
            followed.append(url)

    assert len(targets) >= 150
    assert followed == []


async def test_address_that_is_checked_is_address_that_is_connected(
    network: Network,
) -> None:
    # The name leads elsewhere each time it is asked for: to the public at first, then inside.
    network.moving["rebind.example"] = [["93.184.215.14"], ["127.0.0.1"]]

    async with network.fetcher().get(read_url("https://rebind.example/")) as answer:
        assert answer.status == 200
    assert network.looked_up == ["rebind.example"]
    assert network.connected == [("93.184.215.14", 443)]

    with pytest.raises(
        AddressRefusedError, match="leads to an address that is not public"
    ):
        async with network.fetcher().get(read_url("https://rebind.example/")):
            pass
    assert len(network.connected) == 1


async def test_name_that_moves_inside_between_two_redirects_refused(
    network: Network,
) -> None:
    network.moving["rebind.example"] = [["93.184.215.14"], ["127.0.0.1"]]
    network.answers = [[page(b"", "301 Moved", {"Location": "/next"})]]

    assert await _is_refused(network, "http://rebind.example/")
    assert network.connected == [("93.184.215.14", 80)]


async def test_after_a_failure_the_next_checked_address_is_tried(
    network: Network,
) -> None:
    network.hosts["two.example"] = ["93.184.215.14", "93.184.215.15"]
    network.answers = [httpcore2.ConnectError("refused"), [page(b"second")]]

    async with network.fetcher().get(read_url("http://two.example/")) as answer:
        assert (await answer.read(100)).data == b"second"
    assert [host for host, _ in network.connected] == ["93.184.215.14", "93.184.215.15"]

    network.answers = [
        httpcore2.ConnectError("refused"),
        httpcore2.ConnectTimeout("late"),
    ]
    with pytest.raises(HostUnreachableError, match="refused; late"):
        async with network.fetcher().get(read_url("http://two.example/")):
            pass


async def test_of_two_families_of_addresses_each_is_tried_in_time(
    network: Network,
) -> None:
    network.hosts["many.example"] = [
        *(f"2606:4700::{number}" for number in range(1, 9)),
        "93.184.215.14",
    ]
    network.answers = [httpcore2.ConnectTimeout("late"), [page(b"second")]]

    async with network.fetcher().get(read_url("http://many.example/")) as answer:
        assert (await answer.read(100)).data == b"second"
    assert [host for host, _ in network.connected] == ["2606:4700::1", "93.184.215.14"]


async def test_public_addresses_are_not_refused(network: Network) -> None:
    assert len(PUBLIC) >= 30
    refused = []
    for text in PUBLIC:
        url = read_url(text)
        network.hosts[url.host] = ["93.184.215.14"]
        try:
            NetPolicy().check_url(url)
            await network.fetcher().connector.resolve(url)
        except WebError as error:
            refused.append(error.message)

    assert refused == []
    assert network.connected == []


async def test_redirects_are_followed_by_hand_and_end(network: Network) -> None:
    network.answers = [
        [page(b"", "302 Found", {"Location": "//www.example.com/b?c#d"})],
        [page(b"there")],
    ]

    async with network.fetcher().get(read_url("https://example.com/a")) as answer:
        assert str(answer.url) == "https://www.example.com/b?c"
        assert (await answer.read(100)).data == b"there"
    assert network.names == ["example.com", "www.example.com"]
    assert all(stream.is_closed for stream in network.streams)

    network.answers = [[page(b"", "302 Found", {"Location": "/"})] for _ in range(9)]
    with pytest.raises(RedirectError, match="more than 2 times"):
        async with network.fetcher(max_redirects=2).get(
            read_url("https://example.com/")
        ):
            pass


@given(st.integers(0, 2**32 - 1))
def test_ipv4_address_is_recognized_in_every_embedding(
    number: int,
) -> None:
    address = IPv4Address(number)
    reason = refusal_of(address)

    assert refusal_of(IPv6Address(f"::ffff:{address}")) == reason
    assert refusal_of(IPv6Address(f"64:ff9b::{address}")) == reason
    assert (reason is None) <= (address.is_global and not address.is_multicast)
    for tunnel in (
        f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1",
        f"::{address}",
        f"64:ff9b:1::{address}",
    ):
        assert refusal_of(IPv6Address(tunnel)) is not None


@given(st.integers(0, 2**128 - 1))
def test_ipv6_address_that_stdlib_calls_private_is_not_public(
    number: int,
) -> None:
    address = IPv6Address(number)

    if refusal_of(address) is None:
        held = address.ipv4_mapped
        assert (held or address).is_global
        assert not address.is_multicast
        assert (
            held is not None
            or number >> 125 == 1
            or str(address).startswith("64:ff9b::")
        )


@given(
    st.text(max_size=40),
    st.sampled_from(
        ["http://{}", "http://{}/", "http://{}@127.0.0.1/", "http://a{}.com/"]
    ),
)
def test_a_text_is_one_address_or_none(text: str, form: str) -> None:
    """What is read reads the same again, in ASCII, with a host that one reader cannot take for another."""
    try:
        url = read_url(form.format(text))
    except WebError:
        return
    assert read_url(str(url)) == url
    assert str(url).isascii()
    assert str(url).isprintable()
    assert not set(url.host) & set("@/\\?#% ")
    if url.host.replace(".", "").isdigit():
        assert ip_address(url.host) == url.address


def test_a_refusal_names_what_is_wrong_with_an_address() -> None:
    with pytest.raises(WebError, match="has a user name or password"):
        read_url("http://user:pass@example.com/")


@pytest.mark.parametrize(
    ("port", "is_allowed"),
    [(80, True), (443, True), (1023, False), (1024, True), (6379, False), (8080, True)],
)
def test_ports_that_other_services_have_are_refused(
    port: int, is_allowed: bool
) -> None:
    refused: list[WebError] = []
    try:
        NetPolicy().check_url(read_url(f"http://example.com:{port}/"))
    except WebError as error:
        refused.append(error)

    assert (not refused) is is_allowed
