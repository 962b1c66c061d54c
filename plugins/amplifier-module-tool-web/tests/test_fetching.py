"""What `web_fetch` returns of what servers answer."""

from __future__ import annotations

import codecs
import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio
import html_to_markdown
import pytest
from anyio import to_thread

from amplifier_module_tool_web import Web, _convert
from amplifier_module_tool_web._convert import serve
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

Mount: TypeAlias = Callable[[Mapping[str, JSONValue]], Web]
Inner: TypeAlias = Callable[[JSONObject], str]


class Site(Protocol):
    port: int
    requests: list[str]
    is_silent: bool
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


PAGE = """<html><head><title>The title</title><style>p {}</style></head><body><h1>Head</h1>
<p>See <a href="/b">there</a>.</p><p hidden>unseen</p><p style="display:none">unseen</p><script>run()</script>
<pre><code class="language-python">x = 1
</code></pre></body></html>"""


@pytest.mark.process
async def test_a_page_becomes_markdown(site: Site, web: Web, inner: Inner) -> None:
    result = await web.web_fetch(site.page("/a", PAGE))

    text = inner(result)
    assert "title: The title" in text
    assert "# Head" in text
    assert f"[there]({site.url('/b')})" in text
    assert "```python\nx = 1\n```" in text
    assert "unseen" not in text
    assert "run()" not in text
    assert {**result, "content": ""} == {
        "url": site.url("/a"),
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "trust": "untrusted",
        "content": "",
        "offset": 0,
        "returned_chars": len(text),
        "total_chars": len(text),
        "truncated": False,
    }


@pytest.mark.process
@pytest.mark.parametrize(
    "kind",
    [
        "TEXT/HTML",
        "text/html, text/html",
        "text/plain\r\nContent-Type: text/html; charset=x",
    ],
)
async def test_html_is_told_by_its_type_also_where_that_is_said_twice(
    site: Site, web: Web, inner: Inner, kind: str
) -> None:
    assert "run()" not in inner(await web.web_fetch(site.page("/a", PAGE, kind)))


async def test_without_extract_text_html_stays_as_it_is(
    site: Site, mount: Mount, inner: Inner
) -> None:
    assert (
        inner(await mount({"extract_text": False}).web_fetch(site.page("/a", PAGE)))
        == PAGE
    )


@pytest.mark.process
async def test_a_page_of_many_links_and_a_long_address_stays_small(
    site: Site, web: Web, inner: Inner
) -> None:
    path = "/" + "a" * 4000
    text = inner(await web.web_fetch(site.page(path, '<a href="x">y</a>' * 5000)))

    assert text.startswith("[y](x)")


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/json",
        "application/ld+json",
        "text/markdown",
        "application/xml",
        "image/svg+xml",
    ],
)
async def test_other_text_stays_as_it_is(
    site: Site, web: Web, inner: Inner, kind: str
) -> None:
    body = json.dumps({"a": ["<b>", "ü\n"]}, ensure_ascii=False)

    assert inner(await web.web_fetch(site.page("/a", body, kind))) == body


CHARSETS = {
    "header": ("text/plain; charset=ISO-8859-1", "für €uro".encode("cp1252")),
    "header-quoted": (
        'text/plain; Charset="windows-1252"',
        "für €uro".encode("cp1252"),
    ),
    "utf-8-without-a-word": ("text/plain", "für €uro".encode()),
    "windows-1252-without-a-word": ("text/plain", "für €uro".encode("cp1252")),
    "bom-before-header": (
        "text/plain; charset=iso-8859-1",
        codecs.BOM_UTF8 + "für €uro".encode(),
    ),
    "utf-16-bom": ("text/plain", codecs.BOM_UTF16_BE + "für €uro".encode("utf-16-be")),
    "utf-16-header": ("text/plain; charset=utf-16le", "für €uro".encode("utf-16-le")),
    "gb2312-is-gb18030": ("text/plain; charset=gb2312", "für €uro".encode("gb18030")),
    "unknown-charset": ("text/plain; charset=nonsense", "für €uro".encode()),
    "codec-that-is-no-charset": (
        "text/plain; charset=unicode_escape",
        "für €uro".encode(),
    ),
    "charset-with-a-null": ("text/plain; charset=utf-8\\0", "für €uro".encode()),
    "xml-declaration": (
        "text/xml",
        b"<?xml version='1.0' encoding='cp1252'?>" + "für €uro".encode("cp1252"),
    ),
}


@pytest.mark.parametrize(("kind", "body"), CHARSETS.values(), ids=CHARSETS)
async def test_the_encoding_is_found(
    site: Site, web: Web, inner: Inner, kind: str, body: bytes
) -> None:
    assert inner(await web.web_fetch(site.page("/a", body, kind))).endswith("für €uro")


@pytest.mark.process
@pytest.mark.parametrize(
    "head",
    [
        b"<meta charset=cp1252>",
        b"<meta http-equiv=Content-Type content='text/html; charset=windows-1252'>",
    ],
)
async def test_a_page_may_name_its_encoding(
    site: Site, web: Web, inner: Inner, head: bytes
) -> None:
    body = b"<html><head>" + head + b"</head><body><p>f\xfcr \x80uro</p></body></html>"

    assert "für €uro" in inner(await web.web_fetch(site.page("/a", body, "text/html")))


@pytest.mark.process
async def test_page_that_claims_two_bytes_character_is_read_as_utf_8(
    site: Site, web: Web, inner: Inner
) -> None:
    body = '<html><head><meta charset="utf-16"></head><body><p>für</p></body></html>'

    assert "für" in inner(await web.web_fetch(site.page("/a", body, "text/html")))


@pytest.mark.process
async def test_without_a_type_the_data_tell(site: Site, web: Web, inner: Inner) -> None:
    assert "# Head" in inner(
        await web.web_fetch(site.page("/a", "\n <!DOCTYPE html>" + PAGE, None))
    )
    assert (
        inner(await web.web_fetch(site.page("/b", "<nothing> known", None)))
        == "<nothing> known"
    )
    with pytest.raises(ToolError, match="its data are binary; give save_to_file"):
        await web.web_fetch(site.page("/c", b"%PDF-1.7", None))


@pytest.mark.parametrize(
    "kind", ["application/pdf", "image/png", "application/octet-stream", "video/mp4"]
)
async def test_what_is_no_text_is_refused_before_it_is_read(
    site: Site, web: Web, kind: str
) -> None:
    with pytest.raises(ToolError, match=rf"it is {kind} of 4 bytes; give save_to_file"):
        await web.web_fetch(site.page("/a", b"\0\1\2\3", kind))


async def test_binary_data_under_the_name_of_text_are_refused(
    site: Site, web: Web
) -> None:
    with pytest.raises(
        ToolError, match="its data are binary although it says text/plain"
    ):
        await web.web_fetch(site.page("/a", b"\0\1\2\3", "text/plain"))


@pytest.mark.process
async def test_a_failure_is_told_with_the_beginning_of_its_page(
    site: Site, web: Web, inner: Inner
) -> None:
    url = site.page(
        "/a",
        "<h1>Gone</h1><p>Moved to /b.</p>" + "x" * 5000,
        status="410 Gone",
        Retry_After="120",
    )

    with pytest.raises(
        ToolError, match="answers with status 410; it asks to wait '120'"
    ) as caught:
        await web.web_fetch(url)

    assert caught.value.details["status"] == 410
    text = inner(caught.value.details)
    assert text.startswith("# Gone")
    assert len(text) <= 2000


@pytest.mark.process
@pytest.mark.parametrize(
    ("body", "kind", "encoding"),
    [
        (b"", "text/html", ""),
        (b"\0\0", "text/plain", ""),
        (b"x", "image/png", ""),
        (b"x", "text/plain", "br"),
    ],
    ids=["empty", "binary", "image", "packed"],
)
async def test_a_failure_without_a_page_is_told(
    site: Site, web: Web, body: bytes, kind: str, encoding: str
) -> None:
    with pytest.raises(ToolError, match="status 503") as caught:
        await web.web_fetch(
            site.page("/a", body, kind, "503 No", Content_Encoding=encoding)
        )
    assert "content" not in caught.value.details


async def test_a_page_is_read_part_by_part_and_asked_for_once(
    site: Site, web: Web, inner: Inner
) -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    url = site.page("/a", text, "text/plain")
    parts, offset = [], 0
    while True:
        result = await web.web_fetch(url, offset=offset, limit=3000)
        parts.append(inner(result))
        assert result["total_chars"] == len(text)
        if "next_offset" not in result:
            break
        assert result["truncated"]
        assert isinstance(result["next_offset"], int)
        offset = result["next_offset"]

    assert "".join(parts) == text
    assert len(parts) == 3
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    "joined",
    ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "\r\n", "क\u094d\u200dष"],
    ids=ascii,
)
async def test_what_belongs_together_is_not_cut(
    site: Site, web: Web, inner: Inner, joined: str
) -> None:
    text = f"ab{joined}cd"
    url = site.page("/a", text, "text/plain")

    for limit in range(3, 2 + len(joined)):
        first = await web.web_fetch(url, limit=limit)
        assert inner(first) == "ab"
        assert first["next_offset"] == 2
        assert inner(await web.web_fetch(url, offset=2)) == text[2:]


async def test_a_part_always_has_a_character(site: Site, web: Web) -> None:
    url = site.page("/a", "e" + "\u0301" * 100, "text/plain")

    assert (await web.web_fetch(url, limit=1))["returned_chars"] == 1
    assert (await web.web_fetch(url, limit=60))["returned_chars"] == 60


async def test_how_much_a_result_holds_is_configured(site: Site, mount: Mount) -> None:
    url = site.page("/a", "x" * 100, "text/plain")
    web = mount({"default_limit": 10, "max_limit": 20})

    assert (await web.web_fetch(url))["returned_chars"] == 10
    assert (await web.web_fetch(url, limit=15))["returned_chars"] == 15
    assert (await web.web_fetch(url, limit=50))["returned_chars"] == 20


@pytest.mark.parametrize(
    ("offset", "limit"), [(-1, 1), (0, -1), (0, 0), (100, 1), (101, 1)]
)
async def test_a_part_that_is_none_is_refused(
    site: Site, web: Web, offset: int, limit: int
) -> None:
    with pytest.raises(ToolError, match="offset"):
        await web.web_fetch(
            site.page("/a", "x" * 100, "text/plain"), offset=offset, limit=limit
        )


async def test_an_empty_page_is_a_result(site: Site, web: Web, inner: Inner) -> None:
    result = await web.web_fetch(site.page("/a", "", "text/plain", "204 No Content"))

    assert (inner(result), result["status"], result["total_chars"]) == ("", 204, 0)


async def test_a_long_page_is_read_to_its_limit(
    site: Site, mount: Mount, inner: Inner
) -> None:
    packed = gzip.compress(b"x" * 1_000_000)
    url = site.page("/a", packed, "text/plain", Content_Encoding="gzip")

    result = await mount({"max_bytes": 1000}).web_fetch(url)

    assert inner(result) == "x" * 1000
    assert (result["total_chars"], result["truncated"]) == (None, True)
    assert "longer than the 1000 bytes" in str(result["warning"])
    assert "next_offset" not in result


async def test_a_character_that_the_limit_cuts_is_left_out(
    site: Site, mount: Mount, inner: Inner
) -> None:
    assert (
        inner(
            await mount({"max_bytes": 3}).web_fetch(site.page("/a", "üü", "text/plain"))
        )
        == "ü"
    )


async def test_a_page_that_ends_too_early_is_told(
    site: Site, web: Web, inner: Inner
) -> None:
    packed = gzip.compress(bytes(range(32, 127)) * 1000)[:200]
    result = await web.web_fetch(
        site.page("/a", packed, "text/plain", Content_Encoding="gzip")
    )

    assert inner(result)
    assert "ended before the page did" in str(result["warning"])


@pytest.mark.process
async def test_text_that_grows_when_it_is_converted_is_cut(
    site: Site, mount: Mount, inner: Inner
) -> None:
    wide = (
        "<table><tr><td>"
        + "x" * 400
        + "</td></tr>"
        + "<tr><td>a</td></tr>" * 20
        + "</table>"
    )
    result = await mount({"max_bytes": len(wide)}).web_fetch(site.page("/a", wide))

    assert len(inner(result)) == len(wide)
    assert f"longer than {len(wide)} characters" in str(result["warning"])


@pytest.mark.process
async def test_a_page_that_cannot_be_converted_in_time_is_refused(
    site: Site, mount: Mount
) -> None:
    cells = "<td>x" * 400_000
    web = mount({"timeout": 0.5})

    with (
        pytest.raises(ToolError, match=r"took longer than 0\.5 s|cannot be converted"),
        anyio.fail_after(10),
    ):
        await web.web_fetch(site.page("/a", f"<table><tr>{cells}<tr>{cells}</table>"))


def test_the_converter_does_as_it_is_ordered() -> None:
    order = {
        "html": "<p>See <a href='b'>there</a>.</p><form>x</form>",
        "base_url": "https://example.com/a",
        "most": 9,
    }
    answers = BytesIO()

    serve(BytesIO(json.dumps(order).encode() + b"\n"), answers)
    serve(BytesIO(json.dumps({**order, "most": 99}).encode() + b"\n"), answers)

    assert (
        answers.getvalue().decode() == "See [therSee [there](https://example.com/b).\n"
    )


@pytest.mark.process
def test_a_lower_limit_of_the_system_is_kept() -> None:
    """Whoever runs under one could not set a higher one, and would read no page."""
    limited = "import os, resource as r, sys; r.setrlimit(r.RLIMIT_CPU, (9, 9)); os.execv(sys.argv[1], sys.argv[1:])"
    packages = str(Path(html_to_markdown.__file__).parent.parent)
    program = [
        sys.executable,
        "-I",
        "-S",
        _convert.__file__,
        packages,
        "31",
        str(1 << 30),
    ]

    ended = subprocess.run(
        [sys.executable, "-c", limited, *program],
        input=json.dumps({"html": "<b>x</b>", "base_url": None, "most": 9}).encode()
        + b"\n",
        capture_output=True,
        check=False,
    )

    assert (ended.stdout.strip(), ended.stderr) == (b"**x**", b"")


@pytest.mark.process
async def test_a_converter_that_fails_is_told(
    site: Site, web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    url = site.page("/a", PAGE)
    monkeypatch.setattr("amplifier_module_tool_web.markdown._MEMORY", 1 << 20)
    # the second is more than a pipe holds
    for page in (url, site.page("/long", f"<p>{'x' * 1_000_000}")):
        with pytest.raises(ToolError, match=r"HTML cannot be converted \(.*Error"):
            await web.web_fetch(page)

    monkeypatch.setattr("sys.executable", f"{tmp_path}/nowhere")
    with pytest.raises(ToolError, match="the process that converts HTML cannot be run"):
        await web.web_fetch(url)

    monkeypatch.setattr("amplifier_module_tool_web.markdown.find_spec", lambda _: None)
    with pytest.raises(ToolError, match="html-to-markdown is not installed"):
        await web.web_fetch(url)


async def test_redirects_are_followed_as_often_as_configured(
    site: Site, mount: Mount, inner: Inner
) -> None:
    site.page("/a", "", status="302 Found", Location="/b")
    site.page("/b", "", status="307 Temporary Redirect", Location=site.url("/c"))
    site.page("/c", "there", "text/plain")

    result = await mount({}).web_fetch(site.url("/a"))
    assert (inner(result), result["url"]) == ("there", site.url("/c"))
    with pytest.raises(ToolError, match="more than 1 times"):
        await mount({"max_redirects": 1}).web_fetch(site.url("/a"))


async def test_who_asks_is_configured(site: Site, mount: Mount) -> None:
    await mount({"user_agent": "tester/1.0 (+https://example.com)"}).web_fetch(
        site.page("/a", "x", "text/plain")
    )

    assert "User-Agent: tester/1.0 (+https://example.com)\r\n" in site.requests[0]


@pytest.mark.parametrize("option", ["timeout", "idle_timeout"])
async def test_a_silent_server_is_given_up(
    site: Site, mount: Mount, option: str
) -> None:
    site.is_silent = True
    site.answers["/a"] = b"HTTP/1.1 200 OK\r\n"

    with (
        pytest.raises(ToolError, match=r"longer than 0\.05 s|silent for too long"),
        anyio.fail_after(5),
    ):
        await mount({option: 0.05}).web_fetch(site.url("/a"))


async def test_what_an_endless_page_has_said_in_time_is_returned(
    site: Site, mount: Mount, inner: Inner
) -> None:
    site.is_silent = True
    site.answers["/a"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"

    with anyio.fail_after(5):
        result = await mount({"timeout": 0.5}).web_fetch(site.url("/a"))

    assert (inner(result), result["total_chars"], result["truncated"]) == (
        "hello",
        None,
        True,
    )
    assert result["warning"] == "the page did not end in time; its end is missing"

    site.answers["/a"] = b"HTTP/1.1 500 Down\r\nContent-Type: text/plain\r\n\r\nhello"
    with pytest.raises(ToolError, match="status 500") as caught, anyio.fail_after(5):
        await mount({"timeout": 0.5}).web_fetch(site.url("/a"))
    assert inner(caught.value.details) == "hello"


async def test_a_cancelled_call_closes_its_connection_at_once(
    site: Site, web: Web
) -> None:
    site.is_silent = True
    site.answers["/a"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"
    events = site.asked, site.left  # type: ignore[attr-defined]  # of the fixture's own class

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(web.web_fetch, site.url("/a"))
            await to_thread.run_sync(events[0].wait, 5)
            group.cancel_scope.cancel()
        assert await to_thread.run_sync(events[1].wait, 5)
