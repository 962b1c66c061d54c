"""Pages: what was fetched, as text that a model can read part by part, and a cache of them."""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import attrs
from anyio import current_time

from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["KeptPage", "PageCache", "WebPage"]

_MOST_CHARACTERS: Final = 8_000_000
_MOST_PAGES: Final = 64

_JOINERS: Final = "\u200c\u200d"
_MOST_JOINED: Final = 32


@attrs.frozen(kw_only=True)
class WebPage:
    """A page's text.

    Args:
        url: the address that answered, after all redirects.
        status: the status code of the answer.
        content_type: the media type, as the server said it; empty when it said none.
        text: what was read.
        is_whole: whether that is all of it.
        is_broken: whether the connection ended before it did.
        warning: what is wrong with it, if anything.
    """

    url: str
    status: int
    content_type: str
    text: str
    is_whole: bool = True
    is_broken: bool = False
    warning: str = ""

    def part(self, offset: int, limit: int) -> JSONObject:
        """Return a part of the text, marked as coming from elsewhere, with where to go on.

        Args:
            offset: the first character.
            limit: the most characters; fewer where the last would be cut from what belongs to it.

        Raises:
            ToolError: the page ends before the offset.
        """
        if offset < 0 or limit < 1:
            raise ToolError(
                f"offset is 0 or more and limit 1 or more; got {offset} and {limit}"
            )
        if offset > len(self.text) or (offset == len(self.text) and offset):
            raise ToolError(
                f"the text of {self.url} has {len(self.text)} characters; give an offset below that"
            )
        end = _end_of_character(self.text, offset, min(offset + limit, len(self.text)))
        follows = end < len(self.text)
        result: JSONObject = {
            "url": self.url,
            "status": self.status,
            "content_type": self.content_type,
            "trust": UNTRUSTED,
            "content": mark_untrusted(self.text[offset:end], self.url),
            "offset": offset,
            "returned_chars": end - offset,
            "total_chars": len(self.text) if self.is_whole else None,
            "truncated": follows or not self.is_whole,
        }
        if follows:
            result["next_offset"] = end
        if self.warning:
            result["warning"] = self.warning
        return result


def _end_of_character(text: str, start: int, end: int) -> int:
    """Move an end back to where it separates no accent, no joined sign and no line end from what is before it."""
    for earlier in range(end, max(start, end - _MOST_JOINED), -1):
        if earlier == len(text) or not _belong_together(
            text[earlier - 1], text[earlier]
        ):
            return earlier
    return end


def _belong_together(before: str, after: str) -> bool:
    return (
        unicodedata.category(after) in ("Mn", "Mc", "Me")
        or after in _JOINERS
        or before in _JOINERS
        or 0x1F3FB <= ord(after) <= 0x1F3FF
        or (before == "\r" and after == "\n")
    )


@attrs.define(eq=False)
class KeptPage:
    """A page with when it was read, by the loop's clock, and what its server knows it by."""

    page: WebPage
    read_at: float
    validators: Mapping[str, str]


@attrs.define(eq=False)
class PageCache:
    """Keeps pages for some seconds; the one that was used longest ago leaves first."""

    seconds: float
    _pages: OrderedDict[str, KeptPage] = attrs.field(factory=OrderedDict, init=False)

    def find(self, url: str) -> KeptPage | None:
        """Return a page, however old it is."""
        kept = self._pages.get(url)
        if kept is not None:
            self._pages.move_to_end(url)
        return kept

    def is_fresh(self, kept: KeptPage) -> bool:
        """Tell whether a page need not be asked for again."""
        return current_time() - kept.read_at < self.seconds

    def renew(self, kept: KeptPage) -> None:
        """Let a page count as read now."""
        kept.read_at = current_time()

    def keep(
        self, url: str, page: WebPage, headers: Mapping[str, str], *, is_validated: bool
    ) -> None:
        """Keep a page, unless its server forbids it or the connection broke, so that the next try may have all of it.

        Args:
            url: what was asked for.
            page: the page.
            headers: what came with it.
            is_validated: whether the headers are what the server knows `url` by. Of a page whose end is missing they
                are not stored: the server would say that it is still right.
        """
        self._pages.pop(url, None)
        if (
            not self.seconds
            or page.is_broken
            or "no-store" in headers.get("cache-control", "").lower()
        ):
            return
        validators: dict[str, str] = {}
        if is_validated and page.is_whole:
            validators = {
                asked: headers[name]
                for asked, name in (
                    ("If-None-Match", "etag"),
                    ("If-Modified-Since", "last-modified"),
                )
                if headers.get(name, "").isascii() and headers.get(name)
            }
        self._pages[url] = KeptPage(page, current_time(), validators)
        while len(self._pages) > _MOST_PAGES or self._characters() > _MOST_CHARACTERS:
            self._pages.popitem(last=False)

    def _characters(self) -> int:
        return sum(len(kept.page.text) for kept in self._pages.values())
