"""Reading a page: requesting it, detecting its type, and making text of it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from amplifier_kit.http.netguard import BodyError, WebUrl
from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted, without_marks
from amplifier_module_tool_web.cache import PageCache
from amplifier_module_tool_web.charsets import decode
from amplifier_module_tool_web.config import WebConfig
from amplifier_module_tool_web.markdown import to_markdown
from amplifier_module_tool_web.pages import WebPage
from amplifier_module_tool_web.robots import Robots
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject

if TYPE_CHECKING:
    from amplifier_kit.http.netguard import Body, FetchedResponse, Fetcher

__all__ = ["WebPageReader", "media_type", "refuse_failure"]

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = re.compile(
    r"text/.+|.+\+(?:json|xml|yaml)"
    r"|application/(?:json|xml|javascript|ecmascript|x-javascript|yaml|x-yaml|toml|sql|graphql|x-sh|x-ndjson|jsonl"
    r"|json-seq|x-www-form-urlencoded)"
)
_ACCEPTED: Final = "text/html,application/xhtml+xml;q=0.9,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5"
_SNIFFED_BYTES: Final = 1024
_FAILURE_BYTES: Final = 64 * 1024
_FAILURE_CHARACTERS: Final = 2000
_TYPE_CHARACTERS: Final = 200
_READING: Final = 0.8
"""The part of a call's time in which a page may be read."""


@attrs.define(eq=False)
class WebPageReader:
    """Reads the pages of one session."""

    config: WebConfig
    fetcher: Fetcher
    cache: PageCache
    robots: Robots | None = None

    @asynccontextmanager
    async def open(
        self, url: WebUrl, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[FetchedResponse, None]:
        """Ask for an address, where its site lets it be fetched, and yield the answer; see `Fetcher.get`.

        Raises:
            ToolError: the site forbids it, or it cannot be had.
        """
        check = None
        if self.robots is not None:
            check = self.robots.check
        async with self.fetcher.get(url, headers, check=check) as answer:
            yield answer

    async def read(self, url: WebUrl) -> WebPage:
        """Return a page, from the cache where that is fresh enough.

        Raises:
            ToolError: the page cannot be had, is no text, or its server answers with a failure.
        """
        cached = self.cache.find(str(url))
        if cached is not None and self.cache.is_fresh(cached):
            return cached.page
        asked = {
            "Accept": _ACCEPTED,
            **(cached.validators if cached is not None else {}),
        }
        async with self.open(url, asked) as answer:
            # after a redirect another address answers, which knows nothing of our copy
            if answer.status == 304 and cached is not None and answer.url == url:
                self.cache.renew(cached)
                return cached.page
            page = await self._page(answer)
        # What a server knows a page by holds for the address that answered.
        self.cache.keep(str(url), page, answer.headers, is_validated=answer.url == url)
        return page

    async def _page(self, answer: FetchedResponse) -> WebPage:
        await refuse_failure(answer, self.config)
        kind = media_type(answer.headers)
        if kind and not _is_text(kind):
            raise _no_text(answer, f"it is {kind}{_size(answer.headers)}")
        body = await answer.read(self.config.max_bytes, seconds=_time_to_read())
        kind = kind or _sniff(body.data, answer.headers)
        if not kind or _is_binary(body.data, answer.headers):
            raise _no_text(
                answer,
                f"its data are binary{f' although it says {kind}' if kind else ''}",
            )
        text = await self._text(answer, body, kind)
        warning = self._warning(body, text)
        return WebPage(
            url=str(answer.url),
            status=answer.status,
            content_type=without_marks(answer.headers.get("content-type", ""))[
                :_TYPE_CHARACTERS
            ],
            text=text[: self.config.max_bytes],
            is_whole=not warning,
            is_broken=body.is_broken,
            warning=warning,
        )

    async def _text(self, answer: FetchedResponse, body: Body, kind: str) -> str:
        text = decode(
            body.data,
            _charset(answer.headers),
            has_declaration=kind in _HTML or kind.endswith(("/xml", "+xml")),
        )
        if kind not in _HTML or not self.config.extract_text:
            return text
        return await to_markdown(
            text,
            str(answer.url),
            # one more than is shown, so that a text that was cut is known as such
            limit=self.config.max_bytes + 1,
            seconds=self.config.timeout,
        )

    def _warning(self, body: Body, text: str) -> str:
        if body.is_broken:
            return "the connection ended before the page did; its end is missing"
        if body.is_late:
            return "the page did not end in time; its end is missing"
        if not body.is_whole:
            return f"the page is longer than the {self.config.max_bytes} bytes that are read of one; its end is missing"
        is_cut = len(text) > self.config.max_bytes
        if is_cut:
            return f"its text is longer than {self.config.max_bytes} characters; its end is missing"
        return ""


async def refuse_failure(answer: FetchedResponse, config: WebConfig) -> None:
    """Let answers pass whose status is a success.

    Raises:
        ToolError: it is none; holds the status and the beginning of the body.
    """
    if 200 <= answer.status < 300:
        return
    wait = answer.headers.get("retry-after", "")
    advice = ""
    if wait:
        advice = f"; it asks to wait {without_marks(wait)[:40]!r} before the next try"
    details: JSONObject = {"url": str(answer.url), "status": answer.status}
    beginning = await _beginning(answer, config)
    if beginning:
        details |= {
            "trust": UNTRUSTED,
            "content": mark_untrusted(beginning, str(answer.url)),
        }
    raise ToolError(
        f"{answer.url} answers with status {answer.status}{advice}", **details
    )


async def _beginning(answer: FetchedResponse, config: WebConfig) -> str:
    """Return the first characters of a failure's page; nothing when they cannot be read."""
    kind = media_type(answer.headers)
    if kind and not _is_text(kind):
        return ""
    try:
        body = await answer.read(_FAILURE_BYTES, seconds=_time_to_read())
        if _is_binary(body.data, answer.headers):
            return ""
        text = decode(
            body.data, _charset(answer.headers), has_declaration=kind in _HTML
        )
        if kind in _HTML and config.extract_text:
            text = await to_markdown(
                text, str(answer.url), limit=_FAILURE_CHARACTERS, seconds=config.timeout
            )
    except ToolError:  # the status says enough
        return ""
    return text.strip()[:_FAILURE_CHARACTERS]


def _time_to_read() -> float:
    """Return the seconds in which a page may be read: what a slow one has said by then still has to be converted."""
    return (anyio.current_effective_deadline() - anyio.current_time()) * _READING


def media_type(headers: Mapping[str, str]) -> str:
    """Return the media type that a server says, in lower case; empty when it says none, the last of several."""
    return (
        headers.get("content-type", "")
        .partition(";")[0]
        .rpartition(",")[2]
        .strip()
        .lower()
    )


def _charset(headers: Mapping[str, str]) -> str | None:
    match = re.search(
        r";\s*charset\s*=\s*\"?([^\s\";]+)",
        headers.get("content-type", ""),
        re.IGNORECASE,
    )
    if match is not None:
        return match[1]
    return None


def _is_text(kind: str) -> bool:
    return _TEXT.fullmatch(kind) is not None or kind in _HTML


def _is_binary(data: bytes, headers: Mapping[str, str]) -> bool:
    if b"\0" not in data[:_SNIFFED_BYTES] or data.startswith(
        (b"\xff\xfe", b"\xfe\xff")
    ):
        return False
    # half of the bytes of plain text are zero in UTF-16
    return not (_charset(headers) or "").lower().startswith("utf-16")


def _sniff(data: bytes, headers: Mapping[str, str]) -> str:
    """Tell what data without a media type are: HTML, other text, or neither."""
    if _is_binary(data, headers) or data.startswith(b"%PDF-"):
        return ""
    head = data[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "text/html"
    return "text/plain"


def _size(headers: Mapping[str, str]) -> str:
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit():
        return f" of {length} bytes"
    return ""


def _no_text(answer: FetchedResponse, what: str) -> BodyError:
    return BodyError(
        str(answer.url),
        f"this page cannot be read as text: {without_marks(what)[:200]}; give save_to_file to keep it",
    )
