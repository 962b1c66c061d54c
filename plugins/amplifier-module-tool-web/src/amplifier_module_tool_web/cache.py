"""The pages that a session has read lately, so that the next part of one needs no second fetch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import attrs
from anyio import current_time

from amplifier_module_tool_web.pages import WebPage

__all__ = ["CachedPage", "PageCache"]

_MAX_CHARACTERS: Final = 8_000_000


_MAX_PAGES: Final = 64


@attrs.define(eq=False)
class CachedPage:
    """A page with when it was read, by the loop's clock, and what its server knows it by."""

    page: WebPage
    read_at: float
    validators: Mapping[str, str]


@attrs.define(eq=False)
class PageCache:
    """Keeps pages for some seconds; the one that was used longest ago leaves first."""

    seconds: float
    _pages: OrderedDict[str, CachedPage] = attrs.field(factory=OrderedDict, init=False)

    def find(self, url: str) -> CachedPage | None:
        """Return a page, however old it is."""
        page = self._pages.get(url)
        if page is not None:
            self._pages.move_to_end(url)
        return page

    def is_fresh(self, page: CachedPage) -> bool:
        """Tell whether a page need not be asked for again."""
        return current_time() - page.read_at < self.seconds

    def renew(self, page: CachedPage) -> None:
        """Let a page count as read now."""
        page.read_at = current_time()

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
        self._pages[url] = CachedPage(page, current_time(), validators)
        while len(self._pages) > _MAX_PAGES or self._characters() > _MAX_CHARACTERS:
            self._pages.popitem(last=False)

    def _characters(self) -> int:
        return sum(len(page.page.text) for page in self._pages.values())
