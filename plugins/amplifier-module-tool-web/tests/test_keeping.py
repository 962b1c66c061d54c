"""Which pages are kept, and when their servers are asked again."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import anyio
import pytest

from amplifier_module_tool_web import Web
from amplifier_sdk.jsontypes import JSONObject, JSONValue

Mount: TypeAlias = Callable[[Mapping[str, JSONValue]], Web]
Inner: TypeAlias = Callable[[JSONObject], str]


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that pages are kept by."""
    now = [1000.0]
    monkeypatch.setattr("amplifier_module_tool_web.cache.current_time", lambda: now[0])
    return now


async def test_a_page_is_asked_for_again_when_it_is_old(
    site: Site, mount: Mount, clock: list[float], inner: Inner
) -> None:
    web = mount({"cache_seconds": 60})
    url = site.page("/a", "old", "text/plain")
    await web.web_fetch(url)
    site.page("/a", "new", "text/plain")

    clock[0] += 59
    assert inner(await web.web_fetch(url)) == "old"
    clock[0] += 1
    assert inner(await web.web_fetch(url)) == "new"
    assert len(site.requests) == 2


async def test_pages_may_not_be_kept_at_all(site: Site, mount: Mount) -> None:
    web = mount({"cache_seconds": 0})
    url = site.page("/a", "x", "text/plain", Cache_Control="private, No-Store")
    await web.web_fetch(url)
    await web.web_fetch(url)
    assert len(site.requests) == 2

    web = mount({})
    await web.web_fetch(url)
    await web.web_fetch(url)
    assert len(site.requests) == 4


async def test_a_server_may_say_that_a_page_is_still_right(
    site: Site, mount: Mount, clock: list[float], inner: Inner
) -> None:
    web = mount({"cache_seconds": 60})
    url = site.page(
        "/a",
        "x",
        "text/plain",
        ETag='"1"',
        Last_Modified="Sat, 21 Nov 2026 10:00:00 GMT",
    )
    await web.web_fetch(url)
    site.answers["/a"] = b"HTTP/1.1 304 Not Modified\r\n\r\n"

    clock[0] += 60
    assert inner(await web.web_fetch(url)) == "x"
    assert 'If-None-Match: "1"\r\n' in site.requests[1]
    assert "If-Modified-Since: Sat, 21 Nov 2026 10:00:00 GMT\r\n" in site.requests[1]
    clock[0] += 59
    await web.web_fetch(url)
    assert len(site.requests) == 2


async def test_what_server_knows_page_by_holds_for_own_address_alone(
    site: Site, mount: Mount, clock: list[float], inner: Inner
) -> None:
    """Another page may well have a version of the same name."""

    def second(request: str) -> bytes:
        if "If-None-Match" in request:
            return b"HTTP/1.1 304 Not Modified\r\n\r\n"
        return b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: "1"\r\nContent-Length: 6\r\n\r\nsecond'

    web = mount({"cache_seconds": 60})
    site.page("/b", "first", "text/plain", ETag='"1"')
    site.answers["/c"] = second
    url = site.page("/a", "zeroth", "text/plain", ETag='"1"')
    assert inner(await web.web_fetch(url)) == "zeroth"

    for target, text in (("/b", "first"), ("/c", "second")):
        site.page("/a", "", status="302 Found", Location=target)
        clock[0] += 60
        result = await web.web_fetch(url)
        assert (result["url"], inner(result)) == (site.url(target), text)


async def test_a_page_whose_end_is_missing_is_asked_for_again(
    site: Site, mount: Mount, clock: list[float], inner: Inner
) -> None:
    web = mount({"cache_seconds": 60, "max_bytes": 4})
    packed = gzip.compress(b"abcd")
    broken = site.page(
        "/broken", packed[:-9], "text/plain", Content_Encoding="gzip", ETag='"1"'
    )
    long = site.page("/long", "abcdefg", "text/plain", ETag='"1"')
    for url in (broken, long):
        assert "its end is missing" in str((await web.web_fetch(url))["warning"])

    site.page("/broken", packed, "text/plain", Content_Encoding="gzip", ETag='"1"')
    site.page("/long", "ab", "text/plain", ETag='"1"')
    assert inner(await web.web_fetch(broken)) == "abcd"
    assert inner(await web.web_fetch(long)) == "abcd"
    clock[0] += 60
    assert inner(await web.web_fetch(long)) == "ab"
    assert not any("If-None-Match" in request for request in site.requests)


async def test_a_failure_is_not_kept(site: Site, web: Web, inner: Inner) -> None:
    from amplifier_sdk.errors import ToolError

    with pytest.raises(ToolError, match="404"):
        await web.web_fetch(site.url("/a"))
    assert inner(await web.web_fetch(site.page("/a", "x", "text/plain"))) == "x"


async def test_the_page_that_was_used_longest_ago_leaves_first(
    site: Site, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier_module_tool_web.cache._MAX_CHARACTERS", 25)
    a, b, c = (site.page(f"/{name}", name * 10, "text/plain") for name in "abc")
    for url in (a, b, a, c, a):
        await web.web_fetch(url)
    assert [request.split()[1] for request in site.requests] == ["/a", "/b", "/c"]

    await web.web_fetch(b)
    assert len(site.requests) == 4


async def test_two_calls_at_once_are_two_fetches(site: Site, web: Web) -> None:
    url = site.page("/a", "x", "text/plain")
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(web.web_fetch, url)

    assert 1 <= len(site.requests) <= 5
