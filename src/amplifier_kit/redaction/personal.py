"""What identifies a person: addresses of mail, telephone and card numbers. Never guessed in ids, dates and hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["personal_details"]

_MAIL: Final = re.compile(
    r"(?<=@)[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9\-@])"
)
_LOCAL: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
_PHONE: Final = re.compile(
    r"(?<![\w.+\-:/])(?:\+\d{1,3}[ .\-]?(?:\(\d{1,4}\)[ .\-]?)?\d{2,4}(?:[ .\-]\d{2,8}){1,4}|\+\d{10,14}"
    r"|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?![\w\-:]|\.\d)"
)
_CARD: Final = re.compile(
    r"(?<![\w.\-])(?:\d{4}[ \-]){3}\d{4}(?![\w\-]|\.\d)|(?<![\w.\-])\d{4}[ \-]\d{6}[ \-]\d{5}(?![\w\-])"
)
_SOCIAL: Final = re.compile(
    r"(?<![\w.\-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w\-]|\.\d)"
)


def personal_details(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a text has an address of mail, a telephone number, a card number or a social security number."""
    if "@" in text:
        yield from _addresses(text)
    if not any(map(text.__contains__, "0123456789")):
        return
    for match in _CARD.finditer(text):
        if _is_card(match[0]):
            yield (*match.span(), "card-number")
    for match in _SOCIAL.finditer(text):
        yield (*match.span(), "social-security-number")
    for match in _PHONE.finditer(text):
        yield (*match.span(), "phone-number")


def _addresses(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _MAIL.finditer(text):
        at = match.start() - 1
        # RFC 5321 limits what stands before the @ to 64 characters; the domain is
        # matched first, since a run of local characters would be scanned from
        # each of its places
        before = text[max(0, at - 64) : at]
        size = len(before) - len(before.rstrip(_LOCAL))
        if size:
            yield at - size, match.end(), "email-address"


def _is_card(text: str) -> bool:
    """Check a card number's last digit."""
    digits = [int(sign) for sign in text if sign.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(digits[::-2]) + sum(doubled)) % 10 == 0
