"""Private keys, and the words and codes that stand for one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from amplifier_kit.redaction.places import Found

__all__ = ["private_keys"]

_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----(?P<body>.*?)(?:-----END (?P=kind)-----|\Z)",
    re.DOTALL,
)
_PUTTY: Final = re.compile(
    r"Private-Lines: \d+(?P<body>.*?)(?:Private-MAC: [0-9a-f]+|\Z)", re.DOTALL
)
_KEY_PART: Final = re.compile(
    r"\"(?:d|k|p|q|dp|dq|qi)\"[ \t]*:[ \t]*\"(?P<value>[A-Za-z0-9_\-]{16,2048})\""
)
"""The private parts of a key in JSON."""
_CODES: Final = re.compile(
    r"(?i:(?:recovery|backup) codes?)[^\n]{0,40}[:\n]\s{0,8}"
    r"(?P<value>(?:[0-9A-Za-z]{4,12}(?:-[0-9A-Za-z]{4,12}){1,3}[ \t]{0,4}[\s,]?\s{0,4}){1,40})"
)
_SEED: Final = re.compile(
    r"(?i:mnemonic|seed(?:[ _]phrase|[ _]words)?|recovery[ _]phrase)[\"']?[ \t]*[:=][ \t]*[\"']?"
    r"(?P<value>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b"
)
"""The words that a wallet is made of."""


def private_keys(text: str) -> Iterator[Found]:
    """Yield the private keys of a text, and what stands for one; a block that nothing closes goes to the text's end."""
    if "PRIVATE KEY" in text:
        end = 0
        while (start := text.find("-----BEGIN ", end)) >= 0:
            match = _BLOCK.match(text, start)
            end = match.end() if match else start + 1
            # documentation writes the header with dots below it
            if match and len(match["body"].strip()) > 20:
                yield (*match.span(), "private-key")
    if "Private-Lines:" in text:
        for match in _PUTTY.finditer(text):
            yield (*match.span(), "private-key")
    if '"kty"' in text:
        yield from (
            (*match.span("value"), "private-key") for match in _KEY_PART.finditer(text)
        )
    lowered = text.lower()
    if " code" in lowered:
        yield from (
            (*match.span("value"), "secret")
            for match in _CODES.finditer(text)
            if any(map(str.isdigit, match["value"]))
        )
    if any(map(lowered.__contains__, ("mnemonic", "seed", "phrase"))):
        yield from ((*match.span("value"), "secret") for match in _SEED.finditer(text))
