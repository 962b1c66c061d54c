"""Which lines of a log are wanted: by event, level, time, and what they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

import attrs

from amplifier.app.logs.reader import LogLine
from amplifier.app.text.word_filter import ESCAPE, WordFilter, longest_word
from amplifier_kit.logs.records import LEVELS, LogLevel, LogRecord
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["LineFilter", "comparable", "parse_since"]

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"(\d{1,9})([smhdw])")
_TERM: Final = re.compile(r"([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_OWN: Final = tuple(
    field.name for field in attrs.fields(LogRecord) if field.name != "data"
)
_FORM: Final = "%Y-%m-%dT%H:%M:%S.%f"

_Test: TypeAlias = "_Text | _Field"


@attrs.frozen(kw_only=True)
class LineFilter:
    """What is asked of a line; damage is never selected.

    Args:
        events: patterns such as `tool:*`, of which one must fit; none means all.
        level: the least level.
        terms: what each must hold: `key=value` for a field of the line or of its data, `a.b=value` for one inside of
            another, where the value may be a pattern; any other text stands in the line, in either case.
        since: the earliest time, in the form of `parse_since`.
    """

    events: Sequence[str] = ()
    level: LogLevel = "debug"
    terms: Sequence[str] = ()
    since: str | None = None
    _tests: tuple[_Test, ...] = attrs.field(init=False, repr=False)
    _levels: tuple[LogLevel, ...] = attrs.field(init=False, repr=False)
    _filter: WordFilter = attrs.field(init=False, repr=False)

    @_tests.default
    def _make_tests(self) -> tuple[_Test, ...]:
        return tuple(map(_test, self.terms))

    @_levels.default
    def _make_levels(self) -> tuple[LogLevel, ...]:
        return LEVELS[LEVELS.index(self.level) :]

    @_filter.default
    def _make_filter(self) -> WordFilter:
        return WordFilter.of(self._words())

    @property
    def is_filtering(self) -> bool:
        """Whether there are lines that `may_want` passes over."""
        return bool(self._filter.groups)

    def may_want(self, data: bytes) -> bool:
        """Return whether a line that is wanted may be among bytes, which need not be read."""
        return self._filter.admits(data)

    def wants(self, line: LogLine) -> bool:
        """Tell whether a line is wanted."""
        record = line.record
        if record is None or record.level not in self._levels:
            return False
        if self.since is not None and comparable(record.ts) < self.since:
            return False
        fits = (fnmatchcase(record.event, pattern) for pattern in self.events)
        if self.events and not any(fits):
            return False
        return all(test(line, record) for test in self._tests)

    def _words(self) -> Iterator[tuple[str, ...]]:
        """Yield words of which one at least is in each line that is wanted."""
        events = [longest_word(_without_sets(pattern)) for pattern in self.events]
        names = [name for name in events if name is not None]
        if events and len(names) == len(events):
            yield (*names, ESCAPE)
        if self.level != LEVELS[0]:
            yield (*self._levels, ESCAPE)
        for test in self._tests:
            yield from test.words()


def comparable(ts: str) -> str:
    """Return the part of a record's time that orders records: its date and time to the millisecond."""
    return ts[:23]


def parse_since(text: str, now: datetime | None = None) -> str:
    """Read a time as a person gives it: `30s`, `10m`, `2h`, `3d`, `1w` ago, or ISO 8601 (local without a zone).

    Returns:
        The time in UTC as a record's `ts` begins.

    Raises:
        ConfigError: it is neither.
    """
    if found := _SPAN.fullmatch(text.strip()):
        with suppress(OverflowError):
            span = timedelta(seconds=int(found[1]) * _UNITS[found[2]])
            return ((now or datetime.now(UTC)) - span).strftime(_FORM)[:-3]
        return ""  # before the calendar begins
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC).strftime(_FORM)[:-3]
    except (ValueError, OverflowError):
        raise ConfigError.of(
            text,
            "no time; write 30s, 10m, 2h, 3d, 1w, or a date such as 2026-01-31T08:00",
            subject="--since",
        ) from None


def _test(term: str) -> _Test:
    if found := _TERM.fullmatch(term):
        return _Field(tuple(found[1].split(".")), found[2])
    return _Text(term.casefold())


def _without_sets(pattern: str) -> str:
    """Return a pattern without its sets of characters, such as `[ab]`."""
    return re.sub(r"\[[^]]*\]?|\]", "*", pattern)


@attrs.frozen
class _Text:
    text: str

    def __call__(self, line: LogLine, _: LogRecord) -> bool:
        return self.text in line.data.decode("utf-8", "replace").casefold()

    def words(self) -> Iterator[tuple[str, ...]]:
        """Yield the text itself: it is sought in the line as it is written."""
        yield (self.text,)


@attrs.frozen
class _Field:
    path: tuple[str, ...]
    pattern: str

    def __call__(self, _: LogLine, record: LogRecord) -> bool:
        for value in self._found(record):
            text = value if isinstance(value, str) else json.dumps(value)
            if text == self.pattern or fnmatchcase(text, self.pattern):
                return True
        return False

    def words(self) -> Iterator[tuple[str, ...]]:
        """Yield the key, which a field of the data has, and a word of the value."""
        is_own = len(self.path) == 1 and self.path[0] in _OWN
        if not is_own and self.path[-1].isascii():
            yield (f'"{self.path[-1]}"', ESCAPE)
        # A field of the line that is `null` is not written.
        if not (is_own and fnmatchcase("null", self.pattern)):
            word = longest_word(_without_sets(self.pattern))
            if word is not None:
                yield (word, ESCAPE)

    def _found(self, record: LogRecord) -> list[JSONValue]:
        first, *rest = self.path
        found = list[JSONValue]()
        if first in _OWN and not rest:
            found.append(getattr(record, first))
        value: object = record.data
        for key in rest if first == "data" else self.path:
            if not isinstance(value, Mapping) or key not in value:
                return found
            value = value[key]
        return [*found, value]  # type: ignore[list-item]  # data of JSON hold JSON alone
