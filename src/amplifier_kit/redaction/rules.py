"""Token rules: what a kind of secret looks like, with examples of what it is and of what it is not, in one place."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

import attrs

from amplifier_sdk.values import Value

__all__ = ["LEFT", "RIGHT", "TokenRule", "is_varied"]

LEFT: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtb])|(?<=%[0-9A-F]{2})|(?<=\\u[0-9a-f]{4}))"
"""Where a token can begin: not inside a word, but behind an escape, as in `"\\nAKIA…"` or `%20AKIA…`."""
RIGHT: Final = r"(?![A-Za-z0-9])"
"""Where a token of fixed length ends."""

_ALPHABETS: Final[Mapping[str, str]] = {
    "a": string.ascii_letters,
    "b": string.ascii_letters + string.digits + "-_",
    "d": string.digits,
    "h": "0123456789abcdef",
    "l": string.ascii_lowercase + string.digits,
    "s": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_uppercase + string.digits,
    "w": string.ascii_letters + string.digits,
}
_HOLE: Final = r"<([abdhlsuw])(\d+)>"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TokenRule(Value):
    """One kind of token.

    Args:
        name: what stands in the token's place: `[REDACTED:name]`.
        starts: texts of which one begins the token, or stands in it behind a head of one of the lengths `heads`.
        pattern: the whole token; a group takes a part of it. Where it asks for more than one run of characters, it
            may not begin within such a run: else a text that is made for it takes quadratic time.
        shapes: what the tokens look like: `<w36>` is 36 letters and digits, `<a…>` letters, `<b…>` base64url,
            `<d…>` digits, `<h…>` hexadecimal digits, `<l…>` lower-case letters and digits, `<s…>` base64, `<u…>`
            upper-case letters and digits.
        refuses: texts that the rule leaves alone, although they look similar.
        heads: how many characters of the token may stand before `starts`.
        scan: what finds the places to look at, where `starts` alone are found everywhere.
        needs_digit: whether what has no digit is a word and no token.
    """

    name: str
    starts: tuple[str, ...]
    pattern: str
    shapes: tuple[str, ...]
    refuses: tuple[str, ...] = ()
    heads: tuple[int, ...] = (0,)
    scan: str | None = None
    needs_digit: bool = False

    def samples(self, random: Random) -> Iterator[str]:
        """Yield one token of each shape."""
        for shape in self.shapes:
            yield re.sub(_HOLE, lambda hole: "".join(random.choices(_ALPHABETS[hole[1]], k=int(hole[2]))), shape)

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the rule's tokens are in a text."""
        if not any(map(text.__contains__, self.starts)):
            return
        # The pattern without its left edge begins with a letter, which `re` finds far faster than an edge.
        seen = _compiled(self.scan or self.pattern.removeprefix(LEFT))
        if self.scan is None and not self.pattern.startswith(LEFT):
            yield from (span for match in seen.finditer(text) if (span := self._span(text, match)))
            return
        whole = _compiled(self.pattern)
        for place in seen.finditer(text):
            for head in self.heads:
                match = whole.match(text, place.start() - head) if place.start() >= head else None
                if match is not None and (span := self._span(text, match)):
                    yield span
                    break

    def _span(self, text: str, match: re.Match[str]) -> tuple[int, int] | None:
        begin, end = match.span(match.lastindex or 0)
        return (begin, end) if is_varied(text[begin:end], needs_digit=self.needs_digit) else None


def is_varied(token: str, *, needs_digit: bool = False) -> bool:
    """Tell whether a text is no placeholder such as `xxxxxxxx` or `sk-...`."""
    if needs_digit and not any(map(str.isdigit, token)):
        return False
    tail = token[-16:]
    return len(set(tail)) > 4 and "xxxxx" not in token.lower()


_PATTERNS: Final[dict[str, re.Pattern[str]]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern once: the cache of `re` is smaller than there are kinds of tokens."""
    found = _PATTERNS.get(pattern)
    if found is None:
        found = _PATTERNS[pattern] = re.compile(pattern)
    return found
