"""Finding mentions in text: what is code, quoted, an address or a decorator is none."""

from __future__ import annotations

import re
from typing import Final

import attrs

__all__ = ["LineRange", "Mention", "find_mentions", "has_mentions", "split_range"]

# Possessive quantifiers: a prompt of backticks must not cost quadratic time.
_FENCE: Final = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*(?P=fence)[`~]*+[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_CODE: Final = re.compile(
    r"(?<!`)(?:(?P<ticks>`{2,}+)[^\n]*?(?P=ticks)(?!`)|`(?!`)[^`\n]*+(?:\n(?![ \t]*\n)[^`\n]*+)*+`)"
)
_QUOTED: Final = re.compile(r"(?<![\w@])\"[^\"\n]*\"(?!\w)|(?<![\w@])'[^'\n]*'(?!\w)")
_DECORATOR: Final = re.compile(
    r"^(?:[ \t]*@[A-Za-z_][\w.]*(?:\([^\n]*\))?[ \t]*\n){1,20}(?=[ \t]*(?:def\b|class\b|async[ \t]+def\b))",
    re.MULTILINE,
)
_MENTION: Final = re.compile(
    r"(?<![\w.+\-%/@\\])@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<plain>[^\s\"'`<>|*?()\[\]{};@"
    # typographic quotation marks, and the punctuation of Chinese and Japanese: full stops, commas, brackets, colons
    r"\u2018-\u201f\u3001-\u3003\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff61-\uff64"
    r"]+))"
)
_TRAILING: Final = ".,:!…"
_NAMING: Final = re.compile(r"[./:~]")
_RANGE: Final = re.compile(r":(?P<first>[1-9]\d{0,8})(?:-(?P<last>[1-9]\d{0,8}))?\Z")


@attrs.frozen
class LineRange:
    """Lines of a file, counted from 1, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f":{self.first}-{self.last}"


@attrs.frozen(kw_only=True)
class Mention:
    """One mention.

    Args:
        text: as it is written, with the `@`.
        targets: what it may name, the likeliest first: what follows the `@`, then without the punctuation behind it.
    """

    text: str
    targets: tuple[str, ...]


def find_mentions(text: str) -> list[Mention]:
    """Return the mentions of a text in their order, each once."""
    found = {
        mention.text: mention
        for match in _MENTION.finditer(_without_code(text))
        if (mention := _mention(match)) is not None
    }
    return list(found.values())


def has_mentions(text: str) -> bool:
    """Return whether a text has a mention."""
    return bool(find_mentions(text))


def split_range(target: str) -> tuple[str, LineRange | None]:
    """Part `file:10-40` into the file and its lines; `file:10` is one line."""
    match = _RANGE.search(target)
    if match is None:
        return target, None
    first = int(match["first"])
    last = int(match["last"] or first)
    return target[: match.start()], LineRange(first, max(first, last))


def _mention(match: re.Match[str]) -> Mention | None:
    quoted = match["quoted"]
    if quoted is not None:
        if quoted.strip():
            return Mention(text=match[0], targets=(quoted.strip(),))
        return None
    plain = match["plain"]
    targets = [plain]
    # A file's name may end in a dot, though a sentence more often does.
    while targets[-1] and targets[-1][-1] in _TRAILING:
        targets.append(targets[-1][:-1])
    shortest = targets[-1]
    # a bare word is somebody's name as often as a file's
    if not _NAMING.search(shortest):
        return None
    return Mention(text=f"@{shortest}", targets=tuple(targets))


def _without_code(text: str) -> str:
    """Return the text with blanks in place of what is code or quoted."""
    # Fences first: what stands in one would confuse the patterns after it.
    for pattern in (_FENCE, _CODE, _DECORATOR, _QUOTED):
        text = pattern.sub(_blank, text)
    return text


def _blank(match: re.Match[str]) -> str:
    # Blanks keep the offsets, so that mentions behind code are found where they stand.
    return re.sub(r"[^\n]", " ", match[0])
