"""What sites ask of programs is heeded where the configuration says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import pytest

from amplifier_module_tool_web import Web
from amplifier_module_tool_web.robots import RobotRules
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount: TypeAlias = Callable[[Mapping[str, JSONValue]], Web]
RULES = "User-agent: *\nDisallow: /private\n\nUser-agent: reader\nDisallow: /\n"


class Site(Protocol):
    requests: list[str]
    answers: dict[str, bytes | Callable[[str], bytes]]

    def page(
        self,
        path: str,
        body: bytes | str,
        kind: str | None = ...,
        status: str = ...,
        **headers: str,
    ) -> str: ...
    def url(self, path: str, host: str = ...) -> str: ...


def _asked(site: Site) -> list[str]:
    return [request.split()[1] for request in site.requests]


async def test_rules_are_not_read_unless_they_are_heeded(site: Site, web: Web) -> None:
    site.page("/robots.txt", RULES, "text/plain")

    await web.web_fetch(site.page("/private/a", "x", "text/plain"))
    assert _asked(site) == ["/private/a"]


async def test_rules_are_read_once_and_heeded(site: Site, mount: Mount) -> None:
    site.page("/robots.txt", RULES, "text/plain")
    web = mount({"respect_robots": True})

    await web.web_fetch(site.page("/a", "x", "text/plain"))
    await web.web_fetch(site.page("/b", "x", "text/plain"))
    for save in (None, "file"):
        with pytest.raises(ToolError, match=r"robots\.txt forbids"):
            await web.web_fetch(
                site.page("/private/a", "x", "text/plain"), save_to_file=save
            )
    assert _asked(site) == ["/robots.txt", "/a", "/b"]


async def test_rules_are_those_for_who_asks(site: Site, mount: Mount) -> None:
    site.page("/robots.txt", RULES, "text/plain")

    with pytest.raises(ToolError, match=r"robots\.txt forbids"):
        await mount({"respect_robots": True, "user_agent": "reader"}).web_fetch(
            site.url("/a")
        )


async def test_rules_hold_for_the_target_of_a_redirect(
    site: Site, mount: Mount
) -> None:
    site.page("/robots.txt", RULES, "text/plain")
    site.page("/private/b", "secret", "text/plain")
    site.page("/a", "", status="302 Found", Location="/private/b")

    with pytest.raises(ToolError, match=r"private/b: the site's robots\.txt forbids"):
        await mount({"respect_robots": True}).web_fetch(site.url("/a"))
    assert _asked(site) == ["/robots.txt", "/a"]


STATED = """\ufeff# for all
user-agent: *
Disallow: /p          # and all below
Allow: /p/open
disallow: /*.pdf$
Disallow: /find?*q=
Disallow: /%7Ejo/ü
Sitemap: https://example.com/map
Disallow: /a*b*c$
Allow: /same
Disallow: /same
Disallow:
User-Agent: other
User-agent: Reader/2.0
Allow: /x
Disallow: /

User-agent: quiet
"""


@pytest.mark.parametrize(
    ("agent", "allowed", "forbidden"),
    [
        (
            "amplifier",
            [
                "/",
                "/p/open/1",
                "/a.pdf?x",
                "/b.pdfs",
                "/find?r=1",
                "/axbx",
                "/abcabd",
                "/same",
                "/robots.txt",
                "/~jo/u",
            ],
            [
                "/p",
                "/p/1",
                "/pa",
                "/b/a.pdf",
                "/find?x=1&q=2",
                "/~jo/%C3%BC",
                "/%7ejo/%c3%bc",
                "/abc",
                "/a1b2c3c",
            ],
        ),
        (
            "Mozilla/5.0 (compatible; reader/1.0)",
            ["/x", "/robots.txt"],
            ["/", "/p/open", "/y"],
        ),
        ("quiet", ["/p", "/a.pdf"], []),
        ("read", ["/"], ["/p"]),
    ],
)
def test_rules_are_read_as_their_standard_says(
    agent: str, allowed: list[str], forbidden: list[str]
) -> None:
    rules = RobotRules.read(STATED, agent)

    assert [target for target in allowed if not rules.allow(target)] == []
    assert [target for target in forbidden if rules.allow(target)] == []


def test_hostile_rules_are_matched_in_linear_time() -> None:
    rules = RobotRules.read(
        "User-agent: *\n" + f"Disallow: /{'a*' * 100}b$\n" * 100, "amplifier"
    )
    started = time.thread_time()

    assert rules.allow(f"/{'a' * 8000}")

    assert time.thread_time() - started < 5


async def test_a_site_without_rules_is_fetched_from(site: Site, mount: Mount) -> None:
    await mount({"respect_robots": True}).web_fetch(
        site.page("/private/a", "x", "text/plain")
    )

    assert _asked(site) == ["/robots.txt", "/private/a"]


async def test_a_site_whose_rules_cannot_be_read_is_not_fetched_from(
    site: Site, mount: Mount
) -> None:
    url = site.page("/a", "x", "text/plain")
    site.page("/robots.txt", "", status="503 Down")
    with pytest.raises(ToolError, match="status 503, so the site is not fetched from"):
        await mount({"respect_robots": True}).web_fetch(url)

    site.answers["/robots.txt"] = lambda _: b""
    with pytest.raises(
        ToolError, match="cannot be read, so the site is not fetched from"
    ):
        await mount({"respect_robots": True}).web_fetch(url)
    assert "/a" not in _asked(site)


async def test_few_sites_are_remembered(
    site: Site,
    mount: Mount,
    names: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_web.robots._MAX_SITES", 1)
    names |= {"one.example": ["127.0.0.1"], "two.example": ["127.0.0.1"]}
    web = mount({"respect_robots": True, "cache_seconds": 0})
    site.page("/a", "x", "text/plain")

    for host in ("one.example", "two.example", "one.example", "one.example"):
        await web.web_fetch(site.url("/a", host))
    assert _asked(site).count("/robots.txt") == 3
