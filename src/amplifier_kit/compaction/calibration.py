"""How far a model's own count of tokens differs from a meter's, learned from the usage that it reports."""

from __future__ import annotations

from typing import Final

__all__ = ["UsageCalibration"]

SMALLEST: Final = 0.7
LARGEST: Final = 4.0
"""The bounds of a ratio: an estimate that is too high costs room, one that is too low costs the request."""

IMPLAUSIBLE: Final = 0.3
"""A ratio below this is not believed: something else than the text was counted."""

WEIGHT: Final = 0.5
"""How much of a ratio is the last answer's."""


class UsageCalibration:
    """The ratio of reported to counted tokens for each model, a moving average."""

    __slots__ = ("_ratios",)

    def __init__(self) -> None:
        self._ratios: dict[str, float] = {}

    def ratio(self, model: str) -> float:
        """Return how many tokens the model has for one of the meter's; 1 as long as nothing is known."""
        return self._ratios.get(model, 1.0)

    def learn(self, model: str, counted: int, reported: int) -> None:
        """Take in what a request was counted at and what the model reported for it."""
        if counted < 1 or reported < counted * IMPLAUSIBLE:
            return
        now = min(max(reported / counted, SMALLEST), LARGEST)
        known = self._ratios.get(model)
        if known is None:
            self._ratios[model] = now
        else:
            self._ratios[model] = WEIGHT * now + (1 - WEIGHT) * known
