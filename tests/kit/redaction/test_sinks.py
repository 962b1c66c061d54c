"""Text that comes in pieces: whole lines for a redactor of one's own, nothing of what a broken one got."""

from __future__ import annotations

from amplifier_kit.redaction import (
    REDACTION_FAILED,
    SinkFilter,
    SinkRedactor,
    StrictRedactor,
)
from amplifier_sdk.jsontypes import JSONValue


class Shouting:
    """A redactor that knows nothing of pieces."""

    def redact_text(self, text: str, /) -> str:
        return text.replace("secret", "[out]")

    def redact(self, value: JSONValue, /) -> JSONValue:
        return value


class Broken(StrictRedactor):
    """A strict redactor that fails."""

    def redact_text(self, text: str, /) -> str:
        raise ArithmeticError


def test_a_redactor_of_ones_own_is_given_whole_lines() -> None:
    cleaner = SinkFilter(SinkRedactor(Shouting()))
    assert cleaner.feed("a sec") == ""
    assert cleaner.feed("ret\nand") == "a [out]\n"
    assert cleaner.end() == "and"
    assert cleaner.end() == ""
    assert cleaner.feed("x" * 70_000) == "x" * 70_000


def test_what_a_redactor_fails_on_is_withheld_piece_by_piece() -> None:
    cleaner = SinkFilter(SinkRedactor(Broken()))
    assert cleaner.feed("a secret and") == REDACTION_FAILED
    assert cleaner.end() == REDACTION_FAILED


class Wrong(Shouting):
    """A redactor that answers nonsense."""

    def redact_text(self, text: str, /) -> str:
        return None  # type: ignore[return-value]  # as foreign code may

    def redact(self, value: JSONValue, /) -> JSONValue:
        return None


def test_what_a_redactor_answers_nonsense_to_is_withheld() -> None:
    cleaner = SinkRedactor(Wrong())
    assert cleaner.redact_text("secret") == REDACTION_FAILED
    assert cleaner.redact({"key": "secret"}) == REDACTION_FAILED
    assert cleaner.redact(None) is None
