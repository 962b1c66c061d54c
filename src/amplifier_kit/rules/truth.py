"""What is known of a statement about a call: that it holds, that it does not, or neither."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

__all__ = ["Truth"]


class Truth(IntEnum):
    """How certain it is that something holds; a call whose meaning is not certain is never taken for harmless."""

    NO = 0
    MAYBE = 1
    YES = 2

    @classmethod
    def of(cls, holds: bool) -> Truth:
        """Return `YES` or `NO`."""
        if holds:
            return cls.YES
        return cls.NO

    @classmethod
    def combine(cls, parts: Iterable[Truth], *, every: bool) -> Truth:
        """Return whether all of the parts hold, or any; of no parts nothing is known."""
        return (min if every else max)(parts, default=cls.MAYBE)
