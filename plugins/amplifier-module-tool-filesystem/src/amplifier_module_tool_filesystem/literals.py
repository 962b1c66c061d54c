"""Texts that a regular expression needs in a line to match it, where they are plain to see."""

from __future__ import annotations

import re
from typing import Final

import attrs

__all__ = ["RequiredLiterals"]

_TOKEN: Final = re.compile(
    r"(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<optional>[*?]|\{[0-9,]*\}?)"
    r"|\\(?P<escaped>[^a-zA-Z0-9])"
    r"|(?P<any>[.^$+]|\\[bBdDsSwW])"
    r"|(?P<alternative>\|)"
    r"|(?P<plain>[^\\(\[])",
    re.DOTALL,
)


@attrs.frozen
class RequiredLiterals:
    """Texts of which a line holds at least one when a pattern matches it.

    They only ever tell of lines that nothing matches. Where a pattern shows none they are empty, and every line may
    match.
    """

    texts: tuple[str, ...]
    ignore_case: bool

    @classmethod
    def of(cls, pattern: str, *, ignore_case: bool) -> RequiredLiterals:
        """Read a pattern in Python's syntax."""
        texts = _longest_literals(pattern)
        if not ignore_case:
            return cls(texts, ignore_case)
        return cls(
            tuple(text.lower() for text in texts) if "".join(texts).isascii() else (),
            ignore_case,
        )

    def may_be_in(self, text: str) -> bool:
        """Whether a line of a text can hold one of them."""
        if not self.texts:
            return True
        if self.ignore_case:
            # Some letters outside ASCII are, without case, the same as one inside.
            if not text.isascii():
                return True
            text = text.lower()
        return any(literal in text for literal in self.texts)


def _longest_literals(pattern: str) -> tuple[str, ...]:
    """Return the longest literal of each alternative; nothing when one has none."""
    alternatives = [[""]]  # of each its literals, in order
    at = 0
    while token := _TOKEN.match(pattern, at):
        at = token.end()
        literals = alternatives[-1]
        if token.lastgroup in ("plain", "escaped"):
            literals[-1] += token[token.lastgroup]
        elif token.lastgroup == "alternative":
            alternatives.append([""])
        else:
            if token.lastgroup == "optional":
                # The repeat belongs to the last character, which then need not be
                # there.
                literals[-1] = literals[-1][:-1]
            literals.append("")
    # What a group and other escapes need is not looked into; one more alternative may stand behind them.
    if "|" in pattern[at:]:
        return ()
    found = tuple(max(literals, key=len) for literals in alternatives)
    if all(found):
        return found
    return ()
