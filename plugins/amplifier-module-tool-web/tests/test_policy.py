"""What may be fetched, through the tool, with names that lead where they like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import pytest

from amplifier_module_tool_web import Web
from amplifier_sdk.errors import ConfigError, ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount: TypeAlias = Callable[[Mapping[str, JSONValue]], Web]


class Site(Protocol):
    port: int
    requests: list[str]

    def page(
        self,
        path: str,
        body: bytes | str,
        kind: str | None = ...,
        status: str = ...,
        **headers: str,
    ) -> str: ...
    def url(self, path: str, host: str = ...) -> str: ...


HOSTS = [
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "[::ffff:127.0.0.1]",
    "[::1]",
    "0.0.0.0",
    "①②⑦.⓪.⓪.①",
    "user@127.0.0.1",
    "example.com@127.0.0.1",
    "site.example",
]


@pytest.mark.parametrize("host", HOSTS)
async def test_without_an_exception_this_machine_is_never_asked(
    site: Site, mount: Mount, names: dict[str, list[str]], host: str
) -> None:
    names |= {"localhost": ["127.0.0.1"], "site.example": ["127.0.0.1"]}
    site.page("/a", "secret", "text/plain")

    with pytest.raises(ToolError):
        await mount({"allowed_addresses": []}).web_fetch(site.url("/a", host))
    assert site.requests == []


async def test_an_exception_is_for_its_port_alone(site: Site, mount: Mount) -> None:
    web = mount({"allowed_addresses": [f"127.0.0.1:{site.port + 1}"]})

    with pytest.raises(ToolError, match="not public"):
        await web.web_fetch(site.page("/a", "x", "text/plain"))
    assert site.requests == []


async def test_a_redirect_inside_is_not_followed(site: Site, web: Web) -> None:
    url = site.page(
        "/a", "", status="302 Found", Location=f"http://127.0.0.2:{site.port}/b"
    )

    with pytest.raises(ToolError, match="this machine"):
        await web.web_fetch(url)
    assert len(site.requests) == 1


async def test_names_are_looked_up_and_sent_as_they_are(
    site: Site, web: Web, names: dict[str, list[str]]
) -> None:
    names["site.example"] = ["127.0.0.1"]
    site.page("/a", "x", "text/plain")

    assert (await web.web_fetch(site.url("/a", "Site.Example.")))["url"] == site.url(
        "/a", "site.example"
    )
    assert f"Host: site.example:{site.port}\r\n" in site.requests[0]


async def test_answer_of_dir_that_mixes_inside_and_outside_is_refused(
    site: Site, web: Web, names: dict[str, list[str]]
) -> None:
    names["site.example"] = ["127.0.0.1", "10.0.0.1"]

    with pytest.raises(ToolError, match="a private network"):
        await web.web_fetch(site.url("/a", "site.example"))
    assert site.requests == []


async def test_domains_are_allowed_and_blocked_by_label(
    site: Site, mount: Mount, names: dict[str, list[str]]
) -> None:
    for name in (
        "good.example",
        "a.good.example",
        "bad.good.example",
        "notgood.example",
    ):
        names[name] = ["127.0.0.1"]
    site.page("/a", "x", "text/plain")
    web = mount(
        {"allowed_domains": ["good.example"], "blocked_domains": ["bad.good.example"]}
    )

    for host in ("good.example", "a.good.example"):
        await web.web_fetch(site.url("/a", host))
    for host in ("bad.good.example", "notgood.example", "good.example.net"):
        with pytest.raises(ToolError, match="configuration"):
            await web.web_fetch(site.url("/a", host))
    site.page("/b", "", status="302 Found", Location=site.url("/a", "notgood.example"))
    with pytest.raises(ToolError, match="notgood"):
        await web.web_fetch(site.url("/b", "good.example"))


async def test_ports_are_those_configured(site: Site, mount: Mount) -> None:
    url = site.page("/a", "x", "text/plain")

    await mount({"allowed_ports": [site.port]}).web_fetch(url)
    with pytest.raises(ToolError, match="port"):
        await mount({"allowed_ports": [80, 443]}).web_fetch(url)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"allowed_domain": ["example.com"]}, r"allowed_domain.*allowed_domains"),
        ({"allowed_domains": ["https://example.com"]}, "allowed_domains"),
        ({"blocked_domains": ["192.168."]}, "blocked_domains"),
        ({"allowed_addresses": ["localhost"]}, "allowed_addresses"),
        ({"allowed_ports": [0]}, "allowed_ports"),
        ({"allowed_ports": [65536]}, "allowed_ports"),
        ({"timeout": 0}, "timeout"),
        ({"idle_timeout": True}, "idle_timeout"),
        ({"default_limit": 0}, "default_limit"),
        ({"max_limit": -1}, "max_limit"),
        ({"max_bytes": "1"}, "max_bytes"),
        ({"max_results": 0}, "max_results"),
        ({"max_redirects": -1}, "max_redirects"),
        ({"cache_seconds": -1}, "cache_seconds"),
        ({"user_agent": "two\r\nlines"}, "user_agent"),
        ({"user_agent": ""}, "user_agent"),
        ({"search_engine": "mock"}, "search_engine"),
        ({"search_url": "ftp://example.com"}, "search_url"),
    ],
    ids=str,
)
def test_a_configuration_that_means_nothing_is_refused(
    mount: Mount, config: Mapping[str, JSONValue], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        mount(config)
