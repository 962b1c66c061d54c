from __future__ import annotations

import pytest

from amplifier_kit.vendors.addresses import (
    address_secrets,
    check_address,
    is_loopback,
    join_address,
    shown_address,
)


@pytest.mark.parametrize(
    "address",
    [
        "https://api.acme.example",
        "http://127.0.0.1:8080/v1/",
        "http://[::1]:9/x?version=2",
        "https://u:p@h.",
        "https://ä.example",
    ],
)
def test_an_http_address_with_a_host_is_sound(address: str) -> None:
    assert check_address(address, "base_url") == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "api.acme.example",
        "ftp://acme.example",
        "https://",
        "https:///v1",
        "http://acme.example:port",
        "http://acme.example:99999",
        "http://[::1",
        "https://acme.example/#there",
        "https://acme.example/a path",
        "https://acme.example\n",
        "https://acme..example",
        "https://.acme.example",
        f"https://{'a' * 64}.example",
        "https://acme.example/\x00",
        "https://acme\u200d.example",
        "https://acme\ud800.example",
    ],
)
def test_anything_else_is_refused_under_its_name(address: str) -> None:
    with pytest.raises(ValueError, match="base_url is an address such as"):
        check_address(address, "base_url")


def test_what_may_be_secret_in_an_address_is_not_shown() -> None:
    shown = shown_address("https://user:pass@acme.example:8443/v1?key=abc")

    assert shown == "https://(withheld)@acme.example:8443/v1?(withheld)"
    assert shown_address("https://acme.example/v1") == "https://acme.example/v1"
    assert shown_address("http://[::1") == "(withheld)"


def test_what_is_secret_in_an_address_is_known_in_all_its_forms() -> None:
    secrets = set(
        address_secrets(
            "https://me:p%40ss@acme.example/v1?version=2024-01-01&api-key=a%2Fb&flag"
        )
    )

    assert secrets == {"p%40ss", "p@ss", "bWU6cEBzcw==", "a%2Fb", "a/b"}
    assert (
        list(address_secrets("https://me@acme.example/v1?version=2"))
        == list(address_secrets(""))
        == []
    )


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://localhost:1", True),
        ("http://app.localhost", True),
        ("http://127.0.0.9/v1", True),
        ("http://[::1]:80", True),
        ("http://10.0.0.1", False),
        ("https://localhost.example", False),
    ],
    ids=["localhost", "below localhost", "127", "ipv6", "private", "other name"],
)
def test_this_machine_is_known_by_its_addresses(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


@pytest.mark.parametrize(
    ("base", "path", "whole"),
    [
        ("https://h/v1", "models", "https://h/v1/models"),
        ("https://h/v1/", "/models?limit=5", "https://h/v1/models?limit=5"),
        ("https://h", "v1/models", "https://h/v1/models"),
        (
            "https://h/openai?api-version=3",
            "chat?x=1",
            "https://h/openai/chat?api-version=3&x=1",
        ),
        ("https://h/v1", "", "https://h/v1"),
    ],
    ids=["plain", "slashes", "no base path", "queries", "no path"],
)
def test_a_path_is_put_behind_an_address(base: str, path: str, whole: str) -> None:
    assert join_address(base, path) == whole
