"""What a request asks for and the API cannot give: gathered while the request is written."""

from __future__ import annotations

import attrs

from amplifier_sdk.chat import Degradation

__all__ = ["Losses"]


@attrs.define(eq=False)
class Losses:
    """The losses of one request, in the order in which they were met."""

    _found: list[Degradation] = attrs.field(factory=list, init=False)

    def add(self, requested: str, actual: str, reason: str) -> None:
        """Note one loss."""
        self._found.append(
            Degradation(requested=requested, actual=actual, reason=reason)
        )

    def degradation(self) -> Degradation | None:
        """Return all of them as the one that an answer carries; `None` when there is none."""
        return Degradation.of_all(self._found)
