"""Pages: what was fetched, as text that a model can read part by part."""

from __future__ import annotations

import unicodedata
from typing import Final

import attrs

from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["WebPage"]


_JOINERS: Final = "\u200c\u200d"
_MAX_JOINED: Final = 32


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
    for earlier in range(end, max(start, end - _MAX_JOINED), -1):
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
