"""Finding: where secrets are in a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from amplifier_kit.redaction.assigned import assignments
from amplifier_kit.redaction.columns import columns
from amplifier_kit.redaction.commands import command_lines
from amplifier_kit.redaction.keys import private_keys
from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.tokens import colourless, tokens_in
from amplifier_kit.redaction.written import credentials, pairs

__all__ = ["MARK", "Finder", "lines_in", "merged", "secrets_in", "written_over"]

MARK: Final = "[REDACTED:"
"""How the text begins that stands where a secret was; the kind and `]` follow."""

Finder = Callable[[str], Iterator[Found]]
"""Yields where something is in a text, and its kind."""

_SHORTEST: Final = 8


def secrets_in(text: str) -> Iterator[Found]:
    """Yield where a text has secrets: tokens, private keys, passwords of URLs, headers, assignments."""
    if len(text) >= _SHORTEST:
        text = colourless(text)
        yield from tokens_in(text)
        yield from private_keys(text)
        yield from credentials(text)
        yield from pairs(text)
        yield from lines_in(text)


def lines_in(text: str) -> Iterator[Found]:
    """Yield the secrets of a text that are recognised by the line they stand in: of programs, tables, variables."""
    if len(text) >= _SHORTEST:
        yield from command_lines(text)
        yield from columns(text)
        yield from assignments(text)


def merged(found: list[Found]) -> list[Found]:
    """Sort what was found and join what overlaps; the kind of the first one stays."""
    # the longest of those that begin together comes first and names the mark
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
