"""Token rules: what a kind of secret looks like, with examples of what it is and of what it is not.

The rules stand in `tokens/*.toml`, a table `[[rule]]` each, whose keys are the arguments of `TokenRule`. In a pattern
`{LEFT}` is where a token can begin, and `{RIGHT}` where one of fixed length ends.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Final, NotRequired, TypedDict, cast

import attrs

from amplifier_sdk.values import Value

__all__ = ["TokenRule", "is_varied", "token_rules"]

_LEFT: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtb])|(?<=%[0-9A-F]{2})|(?<=\\u[0-9a-f]{4}))"
)
"""Where a token can begin: not inside a word, but behind an escape, as in `"\\nAKIA…"` or `%20AKIA…`."""
_RIGHT: Final = r"(?![A-Za-z0-9])"
"""Where a token of fixed length ends."""

_FOLDER: Final = Path(__file__).with_name("tokens")
_FILES: Final = (
    "models",
    "forges",
    "clouds",
    "services",
    "messengers",
    "payments",
    "hashes",
)

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
        scan: what else stands at such a start, where `starts` alone are found everywhere.
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
            yield re.sub(
                _HOLE,
                lambda hole: "".join(
                    random.choices(_ALPHABETS[hole[1]], k=int(hole[2]))
                ),
                shape,
            )

    def token_at(self, text: str, index: int) -> tuple[int, int] | None:
        """Return where the token of this rule begins and ends that one of its starts at an index belongs to."""
        # a start of few letters stands everywhere: the cheap pattern is asked
        # first
        if self.scan is not None and _compiled(self.scan).match(text, index) is None:
            return None
        pattern = _compiled(self.pattern)
        for head in self.heads:
            if index >= head:
                # anchored at the start that was found: a search would run over
                # the text per rule
                match = pattern.match(text, index - head)
            else:
                match = None
            if match is not None:
                begin, end = match.span(match.lastindex or 0)
                if is_varied(text[begin:end], needs_digit=self.needs_digit):
                    return begin, end
        return None


def is_varied(token: str, *, needs_digit: bool = False) -> bool:
    """Tell whether a text is no placeholder such as `xxxxxxxx` or `sk-...`."""
    if needs_digit and not any(map(str.isdigit, token)):
        return False
    # the head of a token is fixed; only its tail shows whether somebody typed x's
    tail = token[-16:]
    return len(set(tail)) > 4 and "xxxxx" not in token.lower()


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern once: the cache of `re` is smaller than there are kinds of tokens."""
    return re.compile(pattern.replace("{LEFT}", _LEFT).replace("{RIGHT}", _RIGHT))


@cache
def token_rules() -> tuple[TokenRule, ...]:
    """Return every kind of token that is known by its form; the first one that finds a text names it."""
    return tuple(_read_rules())


def _read_rules() -> Iterator[TokenRule]:
    for name in _FILES:
        tables = tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))
        for fields in cast("list[_Fields]", tables["rule"]):
            yield TokenRule(
                name=fields["name"],
                starts=tuple(fields["starts"]),
                pattern=fields["pattern"],
                shapes=tuple(fields["shapes"]),
                refuses=tuple(fields.get("refuses", ())),
                heads=tuple(fields.get("heads", (0,))),
                scan=fields.get("scan"),
                needs_digit=fields.get("needs_digit", False),
            )


class _Fields(TypedDict):
    """A table of a file."""

    name: str
    starts: list[str]
    pattern: str
    shapes: list[str]
    refuses: NotRequired[list[str]]
    heads: NotRequired[list[int]]
    scan: NotRequired[str]
    needs_digit: NotRequired[bool]
