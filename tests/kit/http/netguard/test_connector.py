"""What a connection offers before anything is fetched over it."""

from __future__ import annotations

import ssl

import pytest

from amplifier_kit.http.netguard.connector import _certificates


def test_a_connection_speaks_http_1_alone() -> None:
    """A server that may choose HTTP/2 would answer in frames that nobody reads."""
    sent = ssl.MemoryBIO()
    client = _certificates().wrap_bio(
        ssl.MemoryBIO(), sent, server_hostname="example.com"
    )
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = sent.read()

    assert b"\x08http/1.1" in hello
    assert b"\x02h2" not in hello
