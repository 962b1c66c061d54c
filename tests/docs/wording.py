"""The words of the product: phrases that no text for a reader may have, each with what to write instead."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

__all__ = ["PHRASES", "find_phrases", "prose_of_markdown", "texts_of_python"]

PHRASES: Final = {
    r"(?:go|goes|going|gone|went) on with": "resume, continue",
    r"sessions? that go(?:es)? on|session goes on": "is resumed, continues",
    r"(?:tried|asked|tries|asks) again": "retried",
    r"(?:is|are|was|were|be|been|being) told": "is reported, is notified, reads",
    r"tells|telling|teller": "reports, emits",
    r"judge(?:s|d)?|judging|judgements?": "evaluate, decision, policy",
    r"not whole": "truncated, incomplete",
    r"several are meant": "ambiguous",
    r"in a circle|a circle|circles": "a cycle, cyclic",
    r"weightiest|weighs most": "precedence",
    r"(?:handler|hook|one) that decides|deciding handlers?": "a blocking hook",
    r"(?:handler|hook|one) that observes|observing handlers?": "an observer",
    r"kept|keeping": "stored, persisted",
    r"tokens (?:read|written)": "input tokens, output tokens",
    r"heeds?|heeded|honours? an order": "supports, respects",
    r"not as asked": "the model does not support",
    r"to look at|looked at|looks at": "checked, read",
    r"what holds": "guarantees",
    r"letters that no folder should have": "unsafe characters",
    r"patience": "timeout",
}
"""Regular expressions, matched as whole words in either case, with the term to use."""

_PATTERNS: Final = {
    re.compile(rf"\b(?:{phrase})\b".replace(" ", r"\s+"), re.IGNORECASE): term
    for phrase, term in PHRASES.items()
}
_FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"``.*?``|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_ARGUMENT: Final = re.compile(r"^ +\*{0,2}\w+:(?= )", re.MULTILINE)


def prose_of_markdown(text: str) -> str:
    """Return a page with its code and link targets blanked, so that offsets and lines stay."""
    for pattern in (_FENCE, _CODE):
        text = pattern.sub(_blank, text)
    return text


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def texts_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string of several words, and of each comment.

    They are messages, prompts and docstrings. What is quoted as code, and the names
    of arguments in a docstring's list, are blanked.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip():
                yield node.lineno, _ARGUMENT.sub(_blank, prose_of_markdown(text))
            case _:
                pass
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], prose_of_markdown(token.string)


def find_phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line (from 0), the phrase and the term to use, for each phrase in a text."""
    for pattern, term in _PATTERNS.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()), match[0], term
