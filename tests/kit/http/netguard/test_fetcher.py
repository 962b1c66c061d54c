"""What goes over the wire, what comes back, and how it ends."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence

import anyio
import pytest

from amplifier_kit.http import netguard
from amplifier_kit.http.netguard import (
    AddressRange,
    Connector,
    DomainPattern,
    NetPolicy,
    WebError,
    WebUrl,
    read_url,
)
from amplifier_kit.http.netguard.errors import (
    AddressRefusedError,
    BodyError,
    DomainRefusedError,
    HostUnreachableError,
    InvalidUrlError,
    PortRefusedError,
)
from tests.kit.http.netguard.networks import Network, page

TEXT = b"The same text, again and again. " * 4000
MEMBERS = gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])
BARE = zlib.compressobj(wbits=-15)
PACKED = {
    "gzip": ("gzip", gzip.compress(TEXT)),
    "gzip-of-two-members": ("gzip", MEMBERS),
    "gzip-with-padding": ("x-gzip", gzip.compress(TEXT) + b"\0" * 40),
    "deflate": ("deflate", zlib.compress(TEXT)),
    "bare-deflate": ("Deflate", BARE.compress(TEXT) + BARE.flush()),
    "identity": ("identity", TEXT),
}


async def _read(network: Network, *answer: bytes, max_bytes: int = 1_000_000) -> bytes:
    network.answers = [list(answer)]
    async with network.fetcher().get(read_url("https://example.com/a?b")) as got:
        return (await got.read(max_bytes)).data


async def test_host_is_asked_for_by_name_at_address_that_was_checked(
    network: Network,
) -> None:
    assert await _read(network, page()) == b"hello"

    assert network.connected == [("93.184.215.14", 443)]
    assert network.names == ["example.com"]
    request = network.sent.decode().lower()
    assert request.startswith("get /a?b http/1.1\r\nhost: example.com\r\n")
    assert "cookie" not in request
    assert "authorization" not in request


async def test_a_port_of_its_own_stands_in_the_host_header(network: Network) -> None:
    async with network.fetcher().get(read_url("http://Example.com:8080")):
        pass

    assert b"GET / HTTP/1.1\r\nHost: example.com:8080\r\n" in network.sent


async def test_a_certificate_that_is_not_trusted_ends_the_fetch(
    network: Network,
) -> None:
    network.untrusted = ["example.com"]

    with pytest.raises(HostUnreachableError, match="certificate verify failed"):
        await _read(network, page())
    assert all(stream.is_closed for stream in network.streams)


@pytest.mark.parametrize(("encoding", "data"), PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("size", [1 << 16, 100])
async def test_bodies_are_unpacked(
    network: Network, encoding: str, data: bytes, size: int
) -> None:
    raw = page(data, headers={"Content-Encoding": encoding})
    head, body = raw[: -len(data)], raw[-len(data) :]

    assert (
        await _read(
            network, head, *(body[i : i + size] for i in range(0, len(body), size))
        )
        == TEXT
    )


@pytest.mark.parametrize(("encoding", "data"), PACKED.values(), ids=PACKED)
async def test_bodies_whose_first_byte_comes_alone_are_unpacked(
    network: Network, encoding: str, data: bytes
) -> None:
    head = page(data, headers={"Content-Encoding": encoding})[: -len(data)]

    assert await _read(network, head, data[:1], data[1:]) == TEXT


async def test_nothing_is_lost_where_a_piece_ends_inside_a_chunk(
    network: Network,
) -> None:
    """What the unpacker holds back when its piece is full comes out before the next chunk."""
    data = bytes(300_000)
    packed = gzip.compress(data)
    head = page(packed, headers={"Content-Encoding": "gzip"})[: -len(packed)]
    for first in range(60, 110):
        assert await _read(network, head, packed[:first], packed[first:]) == data


async def test_a_bomb_is_unpacked_no_further_than_asked(network: Network) -> None:
    bomb = gzip.compress(bytes(16 << 20))
    network.answers = [[page(bomb, headers={"Content-Encoding": "gzip"})]]

    async with network.fetcher().get(read_url("https://example.com/")) as answer:
        body = await answer.read(100_000)

    assert len(body.data) == 100_000
    assert not body.is_whole


async def test_an_endless_body_is_read_no_further_than_asked(network: Network) -> None:
    head = page(b"", length=False)
    network.answers = [[head, *([b"x" * 1000] * 1000), None]]

    async with network.fetcher().get(read_url("https://example.com/")) as answer:
        body = await answer.read(5000)
        left = len(network.streams[0].pieces)

    assert (len(body.data), body.is_whole) == (5000, False)
    assert left > 990
    assert network.streams[0].is_closed


async def test_a_body_of_just_the_size_is_whole(network: Network) -> None:
    network.answers = [[page(b"12345")]]
    async with network.fetcher().get(read_url("https://example.com/")) as answer:
        body = await answer.read(5)

    assert (body.data, body.is_whole, body.is_broken) == (b"12345", True, False)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
async def test_an_encoding_that_was_not_asked_for_is_refused(
    network: Network, encoding: str
) -> None:
    with pytest.raises(BodyError, match="only gzip and deflate are unpacked"):
        await _read(network, page(b"xxxx", headers={"Content-Encoding": encoding}))


async def test_damaged_data_are_refused_and_cut_ones_are_told(network: Network) -> None:
    packed = gzip.compress(bytes(range(256)) * 300)
    damaged = packed[:200] + b"\xff" * 40 + packed[240:]
    with pytest.raises(BodyError, match="damaged"):
        await _read(network, page(damaged, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(BodyError, match="not compressed as it says"):
        await _read(
            network, page(b"\xff\xff no gzip", headers={"Content-Encoding": "gzip"})
        )

    network.answers = [[page(packed[:200], headers={"Content-Encoding": "gzip"})]]
    async with network.fetcher().get(read_url("https://example.com/")) as answer:
        assert (await answer.read(1_000_000)).is_broken


async def test_a_connection_that_breaks_is_told(network: Network) -> None:
    with pytest.raises(HostUnreachableError, match="broke the connection"):
        await _read(network, b"")
    with pytest.raises(HostUnreachableError, match="broke the connection"):
        await _read(network, page(b"12345")[:-2])
    with pytest.raises(HostUnreachableError, match="broke the connection"):
        await _read(network, b"SSH-2.0-OpenSSH\r\n\r\n")


@pytest.mark.parametrize(
    "pieces", [[None], [page(b"12345")[:-2], None]], ids=["headers", "body"]
)
async def test_a_silent_server_is_given_up(
    network: Network, pieces: Sequence[bytes | None]
) -> None:
    network.answers = [list(pieces)]

    with pytest.raises(HostUnreachableError, match="was silent for too long"):
        async with network.fetcher(idle_timeout=0.01).get(
            read_url("https://example.com/")
        ) as answer:
            await answer.read(100)
    assert network.streams[0].is_closed


async def test_what_came_in_time_is_returned(network: Network) -> None:
    network.answers = [[page(b"12345")[:-2], None]]

    async with network.fetcher().get(read_url("https://example.com/")) as answer:
        body = await answer.read(100, seconds=0.01)
        assert network.streams[0].is_closed

    assert (body.data, body.is_whole, body.is_late) == (b"123", False, True)


async def test_a_cancelled_fetch_closes_its_connection(network: Network) -> None:
    network.answers = [[page(b"12345")[:-2], None]]
    started = anyio.Event()

    async def read() -> None:
        async with network.fetcher().get(read_url("https://example.com/")) as answer:
            started.set()
            await answer.read(100)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await started.wait()
            group.cancel_scope.cancel()

    assert network.streams[0].is_closed


async def test_a_switch_to_another_protocol_is_refused(network: Network) -> None:
    with pytest.raises(HostUnreachableError, match="broke the connection"):
        await _read(
            network,
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        )


async def test_repeated_headers_are_joined_and_latin1_is_read(
    network: Network,
) -> None:
    network.answers = [
        [
            b"HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\nB: \xfc\r\nC: \xc3\xbc\r\nContent-Length: 0\r\n\r\n"
        ]
    ]

    async with network.fetcher().get(read_url("https://example.com/")) as answer:
        assert answer.headers == {
            "a": "1, 2",
            "b": "ü",
            "c": "ü",
            "content-length": "0",
        }


async def test_names_that_are_not_found_are_told(network: Network) -> None:
    with pytest.raises(
        WebError, match=r"the name nowhere.example was not found \(Name or service"
    ):
        async with network.fetcher().get(read_url("https://nowhere.example/")):
            pass


async def test_the_system_is_asked_when_nobody_else_is() -> None:
    with pytest.raises(AddressRefusedError, match="this machine"):
        await Connector(policy=NetPolicy()).connect(read_url("http://localhost:8080/"))


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (
            "example.com",
            ["example.com", "a.example.com", "EXAMPLE.com."],
            ["example.com.evil.net", "badexample.com"],
        ),
        (
            "*.example.com",
            ["a.example.com", "a.b.example.com"],
            ["example.com", "aexample.com"],
        ),
        (
            "Bücher.example",
            ["bücher.example", "xn--bcher-kva.example"],
            ["bucher.example"],
        ),
        (
            "93.184.215.14",
            ["93.184.215.14", "[::ffff:93.184.215.14]", "[64:ff9b::93.184.215.14]"],
            ["93.184.215.15", "a.93.184.215.14.com"],
        ),
        (
            "[2606:4700:4700::1111]",
            ["[2606:4700:4700:0::1111]"],
            ["[2606:4700:4700::1112]"],
        ),
    ],
    ids=["domain", "below", "international", "ipv4", "ipv6"],
)
def test_a_domain_is_compared_label_by_label(
    pattern: str, inside: list[str], outside: list[str]
) -> None:
    domains = (DomainPattern.read(pattern),)
    for host in inside:
        NetPolicy(allowed_domains=domains).check_url(read_url(f"https://{host}/"))
        with pytest.raises(DomainRefusedError, match="blocks"):
            NetPolicy(blocked_domains=domains).check_url(read_url(f"https://{host}/"))
        with pytest.raises(DomainRefusedError, match="blocks"):
            NetPolicy(blocked_domains=domains, allowed_domains=domains).check_url(
                read_url(f"https://{host}/")
            )
    for host in outside:
        NetPolicy(blocked_domains=domains).check_url(read_url(f"https://{host}/"))
        with pytest.raises(DomainRefusedError, match="not among"):
            NetPolicy(allowed_domains=domains).check_url(read_url(f"https://{host}/"))


async def test_domains_are_checked_on_redirects_too(network: Network) -> None:
    policy = NetPolicy(allowed_domains=[DomainPattern.read("example.com")])
    network.answers = [[page(b"", "302 Found", {"Location": "https://example.org/"})]]

    with pytest.raises(DomainRefusedError, match=r"example\.org"):
        async with network.fetcher(policy).get(read_url("https://example.com/")):
            pass
    assert network.looked_up == ["example.com"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "https://example.com",
            "example.com/x",
            "example.com:80",
            "*",
            "exa mple.com",
            "127.1",
            "",
            "fe80::1%eth0",
        ),
        *("*.93.184.215.14", "[example.com", "::1]"),
    ],
)
def test_a_pattern_that_no_host_can_match_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a domain as"):
        DomainPattern.read(text)


def test_ports_are_those_of_the_web_or_those_configured() -> None:
    url = read_url("http://example.com:81/")
    with pytest.raises(PortRefusedError, match="port 81"):
        NetPolicy().check_url(url)

    NetPolicy(allowed_ports=[81]).check_url(url)
    with pytest.raises(PortRefusedError, match="port 443"):
        NetPolicy(allowed_ports=[81]).check_url(read_url("https://example.com/"))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (
            "10.1.0.0/16",
            ["http://10.1.2.3/", "http://10.1.0.0:8080/"],
            ["http://10.2.0.1/", "http://127.0.0.1/"],
        ),
        (
            "127.0.0.1:8080",
            ["http://127.0.0.1:8080/"],
            ["http://127.0.0.1:8081/", "http://127.0.0.2:8080/"],
        ),
        ("[::1]:8080", ["http://[::1]:8080/"], ["http://[::1]/", "http://[::2]:8080/"]),
        ("fd00::/8", ["http://[fd12::1]/"], ["http://[fc12::1]/"]),
        ("[::1]", ["http://[::1]:9999/"], ["http://127.0.0.1/"]),
    ],
    ids=["ipv4-range", "ipv4-port", "ipv6-port", "ipv6-range", "ipv6"],
)
def test_private_addresses_are_allowed_one_by_one(
    text: str, inside: list[str], outside: list[str]
) -> None:
    policy = NetPolicy(allowed_addresses=[AddressRange.read(text)])
    for url in inside:
        policy.check_url(read_url(url))
    for url in outside:
        with pytest.raises(WebError, match="not public"):
            policy.check_url(read_url(url))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "localhost",
            "10.0.0.1/8",
            "127.0.0.1:http",
            "1.2.3",
            "[::1",
            "",
            "127.0.0.1:",
            "[::1]:",
            "[::1]8080",
        ),
        *("127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1: 80", "127.0.0.1:8_0"),
    ],
)
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no range of addresses"):
        AddressRange.read(text)


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("/b", "https://example.com/b"),
        ("?q", "https://example.com/dir/page?q"),
        ("c d", "https://example.com/dir/c%20d"),
        ("//other.example/x", "https://other.example/x"),
        ("HTTP://OTHER.example:80/ü", "http://other.example/%C3%BC"),
        ("../up#part", "https://example.com/up"),
    ],
)
def test_a_reference_is_read_from_where_it_stands(reference: str, url: str) -> None:
    assert str(read_url("https://example.com/dir/page").join(reference)) == url


@pytest.mark.parametrize(
    "reference", ["//[x", "ftp://example.com/", "\\\\evil", "https:evil", "a\nb"]
)
def test_a_reference_that_leads_to_no_web_address_is_refused(reference: str) -> None:
    with pytest.raises(InvalidUrlError):
        read_url("https://example.com/dir/page").join(reference)


def test_a_long_address_is_shown_short() -> None:
    with pytest.raises(InvalidUrlError) as caught:
        read_url("https://example.com/" + "a" * 9000)

    assert len(caught.value.message) < 500
    assert caught.value.url.endswith("aaa")


def test_the_package_tells_its_names() -> None:
    assert dir(netguard) == sorted(netguard.__all__)


async def test_conditions_hold_for_the_first_address_alone(network: Network) -> None:
    moved = page(status="302 Found", headers={"Location": "/b"})
    network.answers = [[moved], [page()]]
    headers = {"If-None-Match": "x", "Accept": "text/html"}

    async with network.fetcher().get(read_url("https://example.com/a"), headers):
        pass

    first, second = network.sent.split(b"GET ")[1:]
    assert b"If-None-Match: x" in first
    assert b"If-None-Match" not in second
    assert b"Accept: text/html" in second


async def test_a_broken_connection_is_described_as_far_as_it_is_known(
    network: Network,
) -> None:
    fetcher = network.fetcher(idle_timeout=0.01)
    network.answers = [[b""], [None]]

    with pytest.raises(HostUnreachableError, match=r"connection \(.+\); try again"):
        async with fetcher.get(read_url("https://example.com/a")):
            pass
    with pytest.raises(HostUnreachableError, match="too long; try again"):
        async with fetcher.get(read_url("https://example.com/a")):
            pass


@pytest.mark.parametrize(("length", "is_cut"), [(300, False), (301, True)])
def test_a_long_address_is_truncated_in_messages(length: int, is_cut: bool) -> None:
    url = "x" * (length - 2)  # two quotes stand around it

    assert ("…" in str(HostUnreachableError(url, "is down"))) is is_cut


async def test_each_address_on_the_way_may_be_refused_before_it_is_asked(
    network: Network,
) -> None:
    network.answers = [
        [page(status="302 Found", headers={"Location": "https://www.example.com/"})]
    ]
    asked: list[str] = []

    async def check(url: WebUrl) -> None:
        asked.append(url.host)
        if url.host == "www.example.com":
            raise DomainRefusedError(str(url), "not today")

    with pytest.raises(DomainRefusedError, match="not today"):
        async with network.fetcher().get(read_url("https://example.com/"), check=check):
            pass
    assert asked == ["example.com", "www.example.com"]
    assert b"Host: www" not in network.sent
