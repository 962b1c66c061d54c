"""What sinks redact with: the session's redactor, and nothing at all in the place of what it failed on."""

from __future__ import annotations

from typing import Final

import attrs

from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.redaction.redactor import StrictRedactor
from amplifier_sdk.redaction import REDACTOR, Redactor

__all__ = ["REDACTION_FAILED", "SinkRedactor", "redactor_of"]

REDACTION_FAILED: Final = "(withheld: redaction failed)"
"""What stands in the place of what a redactor failed on."""


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
        return redacted if isinstance(known, str) else REDACTION_FAILED

    def redact(self, value: JSONValue) -> JSONValue:
        """Copy JSON data without its secrets; an object keeps its keys' place but nothing of its content."""
        try:
            redacted = self.inner.redact(value)
        except Exception:  # foreign code: whatever it failed on must not be shown
            return REDACTION_FAILED
        return redacted if redacted is not None or value is None else REDACTION_FAILED


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
