"""The redactor: what takes secrets out of whatever a session writes down or shows.

A module or an application offers one as the capability `session.redactor`. Without one, sinks use the strict redactor
of `amplifier_kit.redaction`. A redactor that fails withholds what it was given.
"""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["REDACTOR", "Redactor"]

REDACTOR: Final = "session.redactor"
"""The capability under which a session's redactor is offered."""


@runtime_checkable
class Redactor(Protocol):
    """Takes secrets out of texts and data. Its methods are called from any thread, and need linear time."""

    def redact_text(self, text: str, /) -> str:
        """Return a text without its secrets; the same text when it has none."""

    def redact(self, value: JSONValue, /) -> JSONValue:
        """Copy JSON data without the secrets in its texts, its keys and under keys that name one."""
