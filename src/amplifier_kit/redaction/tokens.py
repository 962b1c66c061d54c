"""Tokens that are known by their form, found in one pass over a text.

There are hundreds of texts that a token may start with: looking for each of them in turn takes longer than everything
else. Every token has a run of characters without spaces and quotes, which few words are long enough for; only in these
runs the starts are looked for, all of them at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Final

from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.rules import TokenRule, token_rules

__all__ = ["colourless", "tokens_in"]

_RUN: Final = re.compile(r"[^\s\"'`,;<>()\[\]|\\]{14,}")
"""What may hold a token: the shortest has this many characters together."""


def _any_of(texts: Iterable[str]) -> str:
    """Return a pattern for the longest of some texts that stands somewhere, which shares their beginnings."""
    texts = sorted(set(texts))
    parts = []
    for first, group in groupby(filter(None, texts), key=lambda text: text[0]):
        parts.append(re.escape(first) + _any_of(text[1:] for text in group))
    if not parts:
        return ""
    return f"(?:{'|'.join(parts)}){'?' if '' in texts else ''}"


@cache
def _start() -> re.Pattern[str]:
    """Return what finds the longest start at each place; compiled for the first text that may hold a token."""
    return re.compile(
        f"(?=({_any_of(start for rule in token_rules() for start in rule.starts)}))"
    )


@cache
def _rules_of(start: str) -> Sequence[TokenRule]:
    """Return the rules to try where a start is the longest one, in their order."""
    # the longest start hides shorter ones that begin it; their rules are tried as
    # well
    return [rule for rule in token_rules() if start.startswith(rule.starts)]


_COLOURS: Final = re.compile(
    r"(?:\x1b|\\(?:x1b|u001[bB]|033|e))\[[0-9;:?]{0,40}[A-Za-z]"
)
"""What colours a terminal, as it is or written as an escape: a token behind it would seem to stand in a word."""


def tokens_in(text: str) -> Iterator[Found]:
    """Yield where a text has tokens that are known by their form."""
    # blanks keep every place where it was, so what is found fits the text as
    # written
    text = colourless(text)
    ends: dict[str, int] = {}
    for run in _RUN.finditer(text):
        for start in _start().finditer(text, *run.span()):
            index = start.start()
            for rule in _rules_of(start[1]):
                if index < ends.get(rule.name, 0):
                    continue  # within the last one
                found = rule.token_at(text, index)
                if found is not None:
                    ends[rule.name] = found[1]
                    yield (*found, rule.name)


def colourless(text: str) -> str:
    """Return a text with blanks in the place of colours, every other character where it was."""
    # most texts have brackets, and few what begins a colour
    if "\x1b" in text or "\\" in text:
        return _COLOURS.sub(lambda colour: " " * len(colour[0]), text)
    return text
