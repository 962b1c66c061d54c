"""Fuzzy matching: which of many texts a person means by a few of their characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from heapq import nsmallest
from typing import Final

__all__ = ["best_matches"]

_MAX_QUERY: Final = 100


def best_matches(query: str, candidates: Iterable[str], limit: int) -> list[str]:
    """Return the candidates that hold the query's characters in their order, the likeliest first.

    Case counts only where the query has capitals. Likelier is one whose last part begins with the query, then one
    that holds it whole, then one where its characters stand close together; then the shorter one.

    Args:
        query: what was typed; of a long one the first 100 characters count.
        candidates: paths, or any texts.
        limit: how many at most.
    """
    query = query[:_MAX_QUERY]
    if not query:
        return nsmallest(limit, candidates, key=lambda path: (len(path), path))
    flags = re.NOFLAG if query != query.lower() else re.IGNORECASE
    # Each character is looked for once: no query makes this quadratic.
    pattern = "".join(f"[^{_in_class(one)}]*{re.escape(one)}" for one in query[1:])
    search = re.compile(re.escape(query[0]) + pattern, flags).search
    whole = re.compile(re.escape(query), flags).search
    found = ((path, match) for path in candidates if (match := search(path)))

    def key(each: tuple[str, re.Match[str]]) -> tuple[int, int, int, str]:
        path, match = each
        at = whole(path, path.rfind("/", 0, -1) + 1)
        if at is not None:
            rank = 0 if at.start() == path.rfind("/", 0, -1) + 1 else 1
            return (rank, 0, len(path), path)
        rank = 3 if whole(path) is None else 2
        return (rank, match.end() - match.start(), len(path), path)

    return [path for path, _ in nsmallest(limit, found, key=key)]


def _in_class(character: str) -> str:
    """Return a character as it stands in a class of a pattern: upper and lower case match either way."""
    return f"\\{character}" if character in "\\]^-[" else character
