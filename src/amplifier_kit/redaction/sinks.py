"""What sinks redact with: the session's redactor, and nothing at all in the place of what it failed on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from amplifier_kit.redaction.redactor import StrictRedactor
from amplifier_kit.redaction.streams import StreamFilter
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.redaction import REDACTOR, Redactor

__all__ = ["REDACTION_FAILED", "SinkFilter", "SinkRedactor", "redactor_of"]

REDACTION_FAILED: Final = "(withheld: redaction failed)"
"""What stands in the place of what a redactor failed on."""

_MAX_HELD: Final = 65_536
"""How many characters of one line are held before it is cut."""


@attrs.define(eq=False)
class SinkRedactor:
    """A redactor that fails closed: what the one inside raises on, or answers nonsense to, is withheld."""

    inner: Redactor

    def redact_text(self, text: str) -> str:
        """Return a text without its secrets."""
        try:
            redacted = self.inner.redact_text(text)
        except Exception:  # foreign code: whatever it failed on must not be shown
            return REDACTION_FAILED
        known: object = redacted  # foreign code may answer anything
        if isinstance(known, str):
            return redacted
        return REDACTION_FAILED

    def redact(self, value: JSONValue) -> JSONValue:
        """Copy JSON data without its secrets; an object keeps its keys' place but nothing of its content."""
        try:
            redacted = self.inner.redact(value)
        except Exception:  # foreign code: whatever it failed on must not be shown
            return REDACTION_FAILED
        # `None` in the place of something is what a method without `return`
        # answers
        if redacted is not None or value is None:
            return redacted
        return REDACTION_FAILED


@attrs.define(eq=False)
class SinkFilter:
    """Redacts a text that comes in pieces, and fails closed; by whole lines where the redactor knows nothing of pieces.

    Args:
        redactor: the session's.
    """

    redactor: SinkRedactor
    _pieces: StreamFilter | None = attrs.field(default=None, init=False)
    _held: str = attrs.field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        inner: object = self.redactor.inner
        if isinstance(inner, StrictRedactor):
            self._pieces = StreamFilter(inner)

    def feed(self, piece: str) -> str:
        """Take a piece, and return what can be shown by now."""
        if self._pieces is not None:
            return _guarded(partial(self._pieces.feed, piece))
        held = self._held + piece
        cut = len(held)
        # a foreign redactor knows no pieces, and secrets seldom reach over a line
        if cut <= _MAX_HELD:
            cut = held.rfind("\n") + 1
        self._held = held[cut:]
        if cut:
            return self.redactor.redact_text(held[:cut])
        return ""

    def end(self) -> str:
        """Return what was held; the next piece begins a text of its own."""
        if self._pieces is not None:
            return _guarded(self._pieces.end)
        held, self._held = self._held, ""
        if held:
            return self.redactor.redact_text(held)
        return ""


def _guarded(step: Callable[[], str]) -> str:
    try:
        return step()
    except Exception:  # a subclass's code: whatever it failed on must not be shown
        return REDACTION_FAILED


def redactor_of(coordinator: Coordinator) -> SinkRedactor:
    """Return the redactor of a session: the capability `session.redactor`, else a strict one.

    What is no redactor in the capability withholds everything. Ask when the session is ready, since modules offer
    theirs when they are mounted.
    """
    offered = coordinator.get_capability(REDACTOR)
    if offered is None:
        return SinkRedactor(StrictRedactor())
    if isinstance(offered, SinkRedactor):
        return offered
    return SinkRedactor(offered)  # type: ignore[arg-type]  # what has no such methods fails, and that withholds
