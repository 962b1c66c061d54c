"""Finding: where secrets are in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from amplifier_kit.redaction.assigned import assignments
from amplifier_kit.redaction.cloud_rules import CLOUD_RULES
from amplifier_kit.redaction.columns import columns
from amplifier_kit.redaction.commands import command_lines
from amplifier_kit.redaction.forges import FORGE_RULES
from amplifier_kit.redaction.hashes import HASH_RULES
from amplifier_kit.redaction.keys import private_keys
from amplifier_kit.redaction.messenger_rules import MESSAGING_RULES
from amplifier_kit.redaction.models import MODEL_RULES
from amplifier_kit.redaction.payments import PAYMENT_RULES
from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.rules import TokenRule
from amplifier_kit.redaction.services import SERVICE_RULES
from amplifier_kit.redaction.written import credentials, pairs

__all__ = ["MARK", "RULES", "Finder", "lines_in", "merged", "secrets_in", "tokens_in", "written_over"]

RULES: Final[tuple[TokenRule, ...]] = (
    *MODEL_RULES,
    *FORGE_RULES,
    *CLOUD_RULES,
    *SERVICE_RULES,
    *MESSAGING_RULES,
    *PAYMENT_RULES,
    *HASH_RULES,
)
"""Every kind of token that is known by its form."""

_STARTS: Final = tuple({start for rule in RULES for start in rule.starts})

MARK: Final = "[REDACTED:"
"""How the text begins that stands where a secret was; the kind and `]` follow."""

Finder = Callable[[str], Iterator[Found]]
"""Yields where something is in a text, and its kind."""

_SHORTEST: Final = 8
_COLOURS: Final = re.compile(r"(?:\x1b|\\(?:x1b|u001[bB]|033|e))\[[0-9;:?]{0,40}[A-Za-z]")
"""What colours a terminal, as it is or written as an escape: a token behind it would seem to stand in a word."""


def tokens_in(text: str) -> Iterator[Found]:
    """Yield where a text has tokens that are known by their form."""
    if len(text) >= _SHORTEST and any(map(text.__contains__, _STARTS)):
        text = _colourless(text)
        for rule in RULES:
            for start, end in rule.places(text):
                yield start, end, rule.name


def secrets_in(text: str) -> Iterator[Found]:
    """Yield where a text has secrets: tokens, private keys, passwords of URLs, headers, assignments."""
    if len(text) >= _SHORTEST:
        text = _colourless(text)
        yield from tokens_in(text)
        yield from private_keys(text)
        yield from credentials(text)
        yield from pairs(text)
        yield from lines_in(text)


def lines_in(text: str) -> Iterator[Found]:
    """Yield the secrets of a text that are told by the line they stand in: of programs, tables, variables."""
    if len(text) >= _SHORTEST:
        yield from command_lines(text)
        yield from columns(text)
        yield from assignments(text)


def _colourless(text: str) -> str:
    """Return a text with blanks in the place of colours, every other character where it was."""
    return _COLOURS.sub(lambda colour: " " * len(colour[0]), text) if "[" in text else text


def merged(found: list[Found]) -> list[Found]:
    """Sort what was found and join what overlaps; the kind of the first one stays."""
    found.sort(key=lambda place: (place[0], -place[1]))
    joined: list[Found] = []
    for start, end, kind in found:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]), joined[-1][2])
        else:
            joined.append((start, end, kind))
    return joined


def written_over(text: str, found: list[Found]) -> str:
    """Return a text with a mark in the place of everything that was found."""
    parts: list[str] = []
    done = 0
    for start, end, kind in merged(found):
        parts += text[done:start], f"{MARK}{kind}]"
        done = end
    return "".join((*parts, text[done:]))
