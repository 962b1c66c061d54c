"""The server's address, in every form that Ollama's own client takes and in some more."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ollama._client import _parse_host

from amplifier_module_provider_ollama import OllamaConfig
from amplifier_module_provider_ollama.config import server_url

HOSTS: Final = (
    "1.2.3.4",
    "example.com",
    "localhost",
    "[0001:002:003:0004::1]",
    "[::1]",
    "a-b.example",
)
SCHEMES: Final = ("", "http://", "https://")
PORTS: Final = ("", ":1", ":56789", ":80")
PATHS: Final = ("", "/", "/path", "/path/", "/a/b")


@given(
    st.sampled_from(SCHEMES),
    st.sampled_from(HOSTS),
    st.sampled_from(PORTS),
    st.sampled_from(PATHS),
)
def test_a_host_means_what_ollamas_client_takes_it_for(
    scheme: str, host: str, port: str, path: str
) -> None:
    text = f"{scheme}{host}{port}{path}"

    assert server_url(text) == _parse_host(text)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("[::]", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        (' "example.com:1" ', "http://example.com:1"),
        ("'https://example.com'", "https://example.com:443"),
        ("https://me:secret@example.com/x", "https://me:secret@example.com:443/x"),
    ],
)
def test_odd_forms_mean_a_server_that_can_be_called(host: str, url: str) -> None:
    assert server_url(host) == url


@pytest.mark.parametrize(
    "host",
    [
        "ftp://example.com",
        "a b",
        "example.com:port",
        "example.com?key=1",
        "http://[::1",
        "a..b",
    ],
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"host|Port|Invalid"):
        server_url(host)


@pytest.mark.parametrize("name", ["base_url", "host"])
def test_the_configuration_takes_a_host_under_both_names(name: str) -> None:
    config = OllamaConfig(**{name: "box:1"})  # type: ignore[arg-type]  # one of two names of a text

    assert config.base_url == "http://box:1"
