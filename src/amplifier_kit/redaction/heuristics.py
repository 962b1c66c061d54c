"""Heuristics: what distinguishes a secret from a word, a name of code, a path and a placeholder."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Final

__all__ = [
    "PLACEHOLDER",
    "SHORTEST_TOKEN",
    "SHORTEST_WORD",
    "is_literal",
    "is_phrase",
    "is_random",
    "kinds",
]

SHORTEST_WORD: Final = 6
"""How many characters a password has at least."""
SHORTEST_TOKEN: Final = 12
"""How many characters a made-up token has at least."""
PLACEHOLDER: Final = re.compile(
    r"(?i)^(?:\$|%[({]?|<|\{\{?|\[|\*{2}|\.{2}|x{3}|os\.|process\.env|env[.(\[]|your|my[-_]|example|change|placeholder"
    r"|(?:op|vault|keyring|secretsmanager|ssm):/|dummy|redact|\(withheld|hidden|none$|null$|true$|false$|undefined$|todo|insert|replace"
    r"|enter|fake|sample)"
    r"|\$\{|\{\{|\}\}|%\(|%s|\.\.\.|\*\*\*|xxxx|_here$|-here$|example|changeme|placeholder"
    r"|\[redacted:|<[a-z][\w \-]{0,40}>"
)
"""What stands in the place of a secret in examples, templates and code."""
_ENCODED: Final = re.compile(r"(?:[A-Za-z0-9+/]{4}){8,}[A-Za-z0-9+/]{2,3}={1,2}\Z")
"""What is base64 although it begins as a path does."""
_UUID: Final = re.compile(
    r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z"
)


_TALK: Final = re.compile(
    r"(?i)\b(?:pass(?:word|phrase|code)s?|characters?|chars|must|least|your|enter|required|invalid|minimum|field|digits?|zeichen"
    r"|length|repeat|confirm|again|expire[ds]?|days?|than|contain)\b"
)
_GROUPS: Final = re.compile(r"(?:[a-z]{4} ){3}[a-z]{4}\Z")
"""What a provider of mail makes for one program."""


def is_literal(value: str, *, is_password: bool) -> bool:
    """Tell whether a quoted text is a secret: a password has letters and something else, a token looks random."""
    if not is_password:
        return is_random(value) or _UUID.match(value) is not None
    if value.isalpha() and value.islower():
        return False
    if (
        len(value) < SHORTEST_WORD
        or any(map(str.isspace, value))
        or not any(map(str.isalpha, value))
    ):
        return False
    found = kinds(value)
    return found >= 3 or (found == 2 and any(map(str.isdigit, value)))


def is_phrase(value: str) -> bool:
    """Tell whether a quoted text of several words is a password, and not what is said about one."""
    if len(value) > 64 or not re.search(r"\S\s+\S", value) or _TALK.search(value):
        return False
    return _GROUPS.match(value) is not None or (
        any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and value[-1] not in ".:?"
    )


def kinds(value: str) -> int:
    """Count the kinds of characters: lower case, upper case, digits, others."""
    return sum(
        (
            any(map(str.islower, value)),
            any(map(str.isupper, value)),
            any(map(str.isdigit, value)),
            not value.replace("_", "").isalnum(),
        )
    )


def is_random(value: str) -> bool:
    """Tell whether a text looks made by chance: long, without spaces, with digits, and no part too frequent."""
    if (
        len(value) < SHORTEST_TOKEN
        or PLACEHOLDER.search(value)
        or any(map(str.isspace, value))
    ):
        return False
    # more would not change the verdict, and entropy is counted per character
    sample = value[:200]
    if not any(map(str.isdigit, sample)) or not any(map(str.isalpha, sample)):
        return False
    if "://" in sample or (
        sample.startswith(("/", "./", "~")) and not _ENCODED.match(value)
    ):
        return False
    # a short text cannot reach the entropy of a long one, however random it is
    shares = [count / len(sample) for count in Counter(sample).values()]
    bits_per_character = -sum(share * math.log2(share) for share in shares)
    return bits_per_character >= (3.0 if len(sample) < 20 else 3.2)
