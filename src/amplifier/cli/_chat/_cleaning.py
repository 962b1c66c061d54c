"""Streamed text on its way to the terminal, without secrets, also those that are split over its pieces."""

from __future__ import annotations

from typing import Final

import attrs

from amplifier_sdk.kit.redaction import SinkRedactor, StreamFilter, StrictRedactor

__all__ = ["Cleaner"]

_LONGEST: Final = 65_536


@attrs.define(eq=False)
class Cleaner:
    """Redacts a text that comes in pieces; by whole lines where the redactor knows nothing of pieces.

    Args:
        redactor: the session's.
    """

    redactor: SinkRedactor
    _filter: StreamFilter | None = None
    _held: str = ""

    def __attrs_post_init__(self) -> None:
        inner: object = self.redactor.inner
        if isinstance(inner, StrictRedactor):
            self._filter = StreamFilter(inner)

    def feed(self, piece: str) -> str:
        """Take a piece, and return what can be shown by now."""
        if self._filter is not None:
            return self._filter.feed(piece)
        held = self._held + piece
        cut = held.rfind("\n") + 1 if len(held) <= _LONGEST else len(held)
        self._held = held[cut:]
        return self.redactor.redact_text(held[:cut]) if cut else ""

    def end(self) -> str:
        """Return what was held."""
        if self._filter is not None:
            return self._filter.end()
        held, self._held = self._held, ""
        return self.redactor.redact_text(held) if held else ""
