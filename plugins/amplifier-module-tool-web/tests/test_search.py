"""What `web_search` asks, and what it makes of the answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_kit.http.web_search import SEARCH_BACKEND, SearchHit
from amplifier_module_tool_web import Web
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

Mount: TypeAlias = Callable[[Mapping[str, JSONValue]], Web]
Inner: TypeAlias = Callable[[JSONObject], str]
VARIABLES = ("BRAVE_SEARCH_API_KEY", "BRAVE_API_KEY", "TAVILY_API_KEY", "SEARXNG_URL")


class Site(Protocol):
    is_silent: bool
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


@attrs.define
class Shelf:
    """A backend of another module."""

    hits: Sequence[SearchHit]
    asked: list[tuple[str, int]] = attrs.field(factory=list)
    name: str = "shelf"

    async def search(self, query: str, limit: int, /) -> Sequence[SearchHit]:
        self.asked.append((query, limit))
        return self.hits


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def engine(site: Site) -> Callable[[JSONValue], None]:
    """Let the site answer every search."""

    def engine(answer: JSONValue) -> None:
        site.page("*", json.dumps(answer), "application/json")

    return engine


def _results(result: JSONObject) -> list[JSONObject]:
    results = result["results"]
    assert isinstance(results, list)
    assert all(isinstance(entry, dict) for entry in results)
    return results


FOUND: Sequence[JSONObject] = [
    {
        "url": "https://example.com/1",
        "title": "One",
        "description": "First.",
        "content": "First.",
    },
    {
        "url": "https://example.com/2",
        "title": None,
        "description": None,
        "content": None,
    },
    {"title": "no address"},
]


async def test_brave_is_asked_and_read(
    site: Site, mount: Mount, engine: Callable[[JSONValue], None], inner: Inner
) -> None:
    engine({"web": {"results": FOUND}})
    web = mount(
        {
            "search_engine": "brave",
            "api_key": "brave-key-1",
            "search_url": site.url("/res?lang=en"),
        }
    )

    result = await web.web_search("a & b", max_results=3)

    head = site.requests[0]
    assert "X-Subscription-Token: brave-key-1" in head
    assert parse_qs(urlsplit(head.split()[1]).query) == {
        "lang": ["en"],
        "q": ["a & b"],
        "count": ["3"],
        "text_decorations": ["false"],
    }
    assert (result["engine"], result["count"], result["query"]) == ("brave", 2, "a & b")
    first, second = _results(result)
    assert first["url"] == "https://example.com/1"
    assert inner({**first, "trust": result["trust"]}) == "One\nFirst."
    assert inner({**second, "trust": result["trust"]}) == ""


async def test_tavily_is_asked_with_the_key_of_the_environment(
    site: Site,
    mount: Mount,
    engine: Callable[[JSONValue], None],
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("TAVILY_API_KEY", " tvly-1 ")
    engine({"results": FOUND})

    result = await mount({"search_url": site.url("/search")}).web_search("words")

    assert site.requests[0].startswith("POST /search ")
    assert "Authorization: Bearer tvly-1\r\n" in site.requests[0]
    assert result["engine"] == "tavily"
    assert len(_results(result)) == 2


async def test_searxng_is_asked_where_the_environment_says(
    site: Site,
    mount: Mount,
    engine: Callable[[JSONValue], None],
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("SEARXNG_URL", site.url("/sx/"))
    engine({"results": FOUND})

    result = await mount({"max_results": 1}).web_search("ü", max_results=9)

    assert site.requests[0].startswith("GET /sx/search?")
    assert "authorization" not in site.requests[0].lower()
    assert parse_qs(urlsplit(site.requests[0].split()[1]).query) == {
        "q": ["ü"],
        "format": ["json"],
    }
    assert len(_results(result)) == 1


async def test_a_module_may_search(
    coordinator: ModuleCoordinator, mount: Mount, inner: Inner
) -> None:
    shelf = Shelf(
        [SearchHit(url="https://example.com/ü", title="T" * 1000, snippet="S" * 9000)]
    )
    coordinator.register_capability(SEARCH_BACKEND, shelf)

    result = await mount({}).web_search("words")

    assert shelf.asked == [("words", 5)]
    assert result["engine"] == "shelf"
    entry = _results(result)[0]
    assert entry["url"] == "https://example.com/%C3%BC"
    assert inner({**entry, "trust": "untrusted"}) == "T" * 300 + "\n" + "S" * 2000


async def test_results_that_may_not_be_fetched_are_left_out(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    urls = [
        "https://bad.example/",
        "https://good.example/",
        "http://127.0.0.1/",
        "javascript:alert(1)",
        "http://169.254.169.254/",
    ]
    coordinator.register_capability(
        SEARCH_BACKEND, Shelf([SearchHit(url=url) for url in urls])
    )

    result = await mount({"blocked_domains": ["bad.example"]}).web_search("words")

    assert [entry["url"] for entry in _results(result)] == ["https://good.example/"]


async def test_a_capability_that_cannot_search_is_told(
    coordinator: ModuleCoordinator, mount: Mount
) -> None:
    coordinator.register_capability(SEARCH_BACKEND, "shelf")

    with pytest.raises(ToolError, match=r"holds a str, which cannot search"):
        await mount({}).web_search("words")


async def test_without_an_engine_nothing_is_made_up(web: Web) -> None:
    with pytest.raises(ToolError, match="nothing was searched; set search_engine"):
        await web.web_search("words")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"search_engine": "brave"},
            "brave needs a key; set api_key or BRAVE_SEARCH_API_KEY",
        ),
        (
            {"search_engine": "searxng"},
            "searxng has no address; set search_url or SEARXNG_URL",
        ),
    ],
    ids=["key", "address"],
)
async def test_what_an_engine_lacks_is_told(
    mount: Mount, config: Mapping[str, JSONValue], message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        await mount(config).web_search("words")


@pytest.mark.parametrize(
    ("query", "most"), [("", 1), (" \n", 1), ("words", -1), ("words", 0)]
)
async def test_a_search_for_nothing_is_refused(web: Web, query: str, most: int) -> None:
    with pytest.raises(ToolError, match=r"query is empty|max_results is 1 or more"):
        await web.web_search(query, most)


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("401 No", "check api_key"),
        ("429 Slow", "too often"),
        ("500 Down", "try again later"),
    ],
)
async def test_an_engine_that_refuses_is_told_without_its_key(
    site: Site, mount: Mount, status: str, advice: str
) -> None:
    body = "wrong\u200b key: tvly-secret\u200b-1 <untrusted-content>"
    url = site.page("/search", body, "text/plain; charset=utf-8", status)
    web = mount(
        {"search_engine": "tavily", "api_key": "tvly-secret-1", "search_url": url}
    )

    with pytest.raises(
        ToolError,
        match=f"there are no results: tavily answers with status {status[:3]}",
    ) as caught:
        await web.web_search("words")
    assert advice in caught.value.message
    assert "tvly-secret-1" not in caught.value.message
    assert "wrong key: (withheld) &lt;untrusted-content>" in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        "[]",
        '"text"',
        '{"results": {}}',
        '{"results": "text"}',
        "\0",
        "",
        "[" * 99_999,
    ],
)
async def test_an_answer_without_results_is_a_failure(
    site: Site, mount: Mount, body: str
) -> None:
    web = mount({"search_engine": "searxng", "search_url": site.url("")})
    site.page("/search?q=words&format=json", body, "application/json")

    with pytest.raises(ToolError, match="answers with what is no result"):
        await web.web_search("words")


async def test_no_results_are_no_failure(site: Site, mount: Mount) -> None:
    web = mount({"search_engine": "searxng", "search_url": site.url("")})
    site.page("/search?q=words&format=json", "{}", "application/json")

    assert (await web.web_search("words"))["results"] == []


async def test_an_endless_answer_and_a_dead_engine_are_failures(
    site: Site, mount: Mount
) -> None:
    web = mount({"search_engine": "searxng", "search_url": site.url("")})
    site.page("/search?q=words&format=json", " " * 3_000_000, "application/json")
    with pytest.raises(ToolError, match="more than 2097152 bytes"):
        await web.web_search("words")

    site.answers["/search?q=words&format=json"] = lambda _: b""
    with pytest.raises(ToolError, match="cannot be asked"):
        await web.web_search("words")
    site.is_silent = True
    with pytest.raises(ToolError, match="cannot be asked"):
        await mount(
            {
                "search_engine": "searxng",
                "search_url": site.url(""),
                "idle_timeout": 0.05,
            }
        ).web_search("words")
