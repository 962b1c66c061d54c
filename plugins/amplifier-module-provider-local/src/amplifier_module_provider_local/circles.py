"""Answers that repeat themselves: a small model may say the same until its tokens are used up."""

from __future__ import annotations

from typing import Final

__all__ = ["goes_round"]

TIMES: Final = 5
"""How often the same has to stand behind one another; fewer are a list with equal lines, or a refrain."""

_SHORTEST: Final = 12
_LONGEST: Final = 400
"""Characters of what is repeated: shorter is a rule of dashes or an indentation, longer is not looked for."""


def goes_round(text: str) -> bool:
    """Tell whether a text ends in the same words five times, in prose or line by line."""
    tail = text[-_LONGEST * TIMES :]
    longest = min(_LONGEST, len(tail) // TIMES)
    # Asked with every token: most lengths are no repetition's, as one character shows.
    lengths = [
        length
        for length in range(_SHORTEST, longest + 1)
        if tail[-length - 1] == tail[-1]
    ]
    return any(_repeats(tail, length) for length in lengths)


def _repeats(tail: str, length: int) -> bool:
    """Tell whether the last `length` characters hold words, and stand there five times."""
    unit = tail[-length:]
    return tail.endswith(unit * TIMES) and any(map(str.isalpha, unit))
