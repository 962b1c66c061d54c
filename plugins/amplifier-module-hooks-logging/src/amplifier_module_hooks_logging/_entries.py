"""Entries: events on their way to the log. They are taken on the loop and made into lines in the writer's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.logs.records import LogLevel, LogRecord, encode_record, roles_of
from amplifier_kit.media.encoded import described_media, is_encoded_media
from amplifier_kit.redaction import REDACTION_FAILED, SinkRedactor
from amplifier_sdk.convert import to_json
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import WITHHELD, Secret

__all__ = ["EventEntry", "level_of", "line_of", "taken"]

_LEVELS: Final[Mapping[str, LogLevel]] = {
    "approval:denied": "warning",
    "cancel:completed": "warning",
    "cancel:requested": "warning",
    "content_block:delta": "debug",
    "policy:violation": "warning",
    "provider:retry": "warning",
    "provider:throttle": "warning",
    "provider:tool_sequence_repaired": "warning",
    "thinking:delta": "debug",
}
_RAW: Final = frozenset({"messages", "raw"})
_HEADER: Final = frozenset(
    {
        "session_id",
        "parent_id",
        "turn_id",
        "span_id",
        "parent_span_id",
        "iteration",
        "timestamp",
        "tool_obj",
    }
)
"""What stands elsewhere in a line, or in the plan: a tool's schema is the same in every call."""
_MAX_VALUES: Final = 20_000
_MAX_DEPTH: Final = 60
_SPARE: Final = 8_192
"""Characters that are searched behind the longest text: a secret that is cut is not recognised."""
_EDGE: Final = 4_096
"""How many of them are never written."""


@attrs.frozen(kw_only=True)
class EventEntry:
    """One event as it was when it happened: containers are copied, frozen values are not."""

    event: str
    level: LogLevel
    seq: int
    data: dict[str, object]
    redactor: SinkRedactor


def level_of(event: str, data: Mapping[str, object]) -> LogLevel:
    """Return how much an event matters."""
    if event.endswith((":error", "_failed")) or data.get("status") in (
        "error",
        "failed",
    ):
        return "error"
    return _LEVELS.get(event, "info")


def taken(
    data: Mapping[str, object], *, strip_raw: bool, max_text: int
) -> dict[str, object]:
    """Copy what an event carries, as far as somebody could change it before it is written."""
    # In a list, so that all levels of the recursion count down the same number.
    left = [_MAX_VALUES]
    return {
        key: _left_out(key, value)
        if strip_raw and key in _RAW
        else _copied(value, left, max_text + _SPARE, 0)
        for key, value in data.items()
    }


def _left_out(key: str, value: object) -> str:
    if key == "messages" and isinstance(value, Sequence):
        return f"(left out: {roles_of(value)})"
    return "(left out)"


def _copied(value: object, left: list[int], longest: int, depth: int) -> object:
    left[0] -= 1
    if isinstance(value, str):
        # media are described as a whole when they are written
        if len(value) <= longest or is_encoded_media(value):
            return value
        return _Cut(value[:longest], len(value))
    if isinstance(value, (bytes, bytearray)) or not isinstance(
        value, (Mapping, Sequence)
    ):
        return value
    if left[0] < 0 or depth > _MAX_DEPTH:
        return "(left out: too large or nested too deep)"
    if isinstance(value, Mapping):
        return {
            key: _copied(item, left, longest, depth + 1) for key, item in value.items()
        }
    return [_copied(item, left, longest, depth + 1) for item in value]


@attrs.frozen
class _Cut:
    """The beginning of a text that is too long."""

    text: str
    size: int


def line_of(
    entry: EventEntry, session_id: str, run: str, *, max_text: int, max_bytes: int
) -> bytes:
    """Redact an entry and write it as a line of at most `max_bytes`."""
    data = entry.data
    trimmer = _Trimmer(entry.redactor, max_text)
    plain = {
        str(key): trimmer.plain(value)
        for key, value in data.items()
        if key not in _HEADER
    }
    # After trimming: the rules take time for each character, and a log must not hold up
    # a turn's end.
    redacted = entry.redactor.redact(plain)
    body: JSONObject
    if isinstance(redacted, Mapping):
        body = dict(redacted)
    else:
        body = {"withheld": REDACTION_FAILED}
    line = encode_record(_record(entry, session_id, run, body))
    if len(line) <= max_bytes:
        return line
    note: JSONObject = {
        "left_out": f"the record has {len(line)} bytes, at most {max_bytes} are written"
    }
    # A quarter each: escapes may make a text several times as long in JSON.
    share = max_bytes // (4 * len(body))
    retained = {key: value for key, value in body.items() if len(str(value)) <= share}
    line = encode_record(_record(entry, session_id, run, {**retained, **note}))
    if len(line) <= max_bytes:
        return line
    return encode_record(_record(entry, session_id, run, note))


def _record(
    entry: EventEntry, session_id: str, run: str, body: JSONObject
) -> LogRecord:
    def text(name: str) -> str | None:
        value = entry.data.get(name)
        if isinstance(value, str):
            return value
        return None

    iteration = entry.data.get("iteration")
    return LogRecord(
        ts=text("timestamp") or "",
        level=entry.level,
        event=entry.event,
        session_id=text("session_id") or session_id,
        seq=entry.seq,
        run=run,
        parent_id=text("parent_id"),
        turn_id=text("turn_id"),
        span_id=text("span_id"),
        parent_span_id=text("parent_span_id"),
        iteration=iteration if isinstance(iteration, int) else None,
        data=body,
    )


@attrs.frozen
class _Trimmer:
    """Makes JSON data of anything, with texts that are not too long."""

    redactor: SinkRedactor
    max_text: int

    def plain(self, value: object, depth: int = 0) -> JSONValue:
        """Return a value as JSON data."""
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, (str, _Cut)):
            if isinstance(value, str):
                return self._text(value, len(value))
            return self._text(value.text, value.size)
        if depth > _MAX_DEPTH + 10:
            return "(left out: nested too deep)"
        if isinstance(value, Mapping):
            return {
                self._text(str(key), 0): self.plain(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.plain(item, depth + 1) for item in value]
        return self._scalar(value, depth)

    def _scalar(self, value: object, depth: int) -> JSONValue:
        if isinstance(value, float):
            # False for infinities and NaN, which JSON does not have.
            if value - value == 0:
                return value
            return str(value)
        if isinstance(value, Secret):
            return WITHHELD
        if isinstance(value, (bytes, bytearray)):
            return f"({len(value)} bytes)"
        if isinstance(value, BaseException):
            return {"type": type(value).__name__, "message": self._text(str(value), 0)}
        try:
            return self.plain(to_json(value), depth + 1)
        except (TypeError, ValueError):  # it has no JSON form
            return f"({type(value).__module__}.{type(value).__qualname__})"

    def _text(self, text: str, size: int) -> str:
        """Cut a long text behind its redaction, so that no part of a secret is left at the edge."""
        described = described_media(text)
        if described is not None:
            return described
        if len(text) <= self.max_text:
            return text
        redacted = self.redactor.redact_text(text[: self.max_text + _SPARE])
        # Redaction may shorten a text, so its end is measured after it.
        retained = redacted[: min(self.max_text, max(0, len(redacted) - _EDGE))]
        return f"{retained}… ({max(size, len(text))} characters)"
