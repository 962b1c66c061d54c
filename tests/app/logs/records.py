"""Records and logs for the tests: made of a few words, a second apart."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from amplifier_kit.logs.records import LogLevel, LogRecord, encode_record

__all__ = ["Story", "at", "write_log"]


def at(seconds: float) -> str:
    """Return a time, so many seconds after the new year."""
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat(
        timespec="milliseconds"
    )


class Story:
    """Makes the records of one session, a second after one another unless said otherwise."""

    def __init__(
        self, session_id: str = "s", parent_id: str | None = None, start: float = 0.0
    ) -> None:
        self.session_id = session_id
        self.parent_id = parent_id
        self.now = start
        self.records: list[LogRecord] = []
        self._seq = count(1)

    def tell(
        self,
        event: str,
        /,
        *,
        span: str | None = "t" * 16,
        turn: str | None = "turn",
        above: str | None = None,
        iteration: int | None = None,
        level: LogLevel = "info",
        after: float = 1.0,
        **data: object,
    ) -> LogRecord:
        """Add a record."""
        self.now += after
        record = LogRecord(
            ts=at(self.now),
            level=level,
            event=event,
            session_id=self.session_id,
            parent_id=self.parent_id,
            seq=next(self._seq),
            run="r",
            turn_id=turn,
            span_id=span,
            parent_span_id=above,
            iteration=iteration,
            data=data,  # type: ignore[arg-type]  # tests give what JSON has
        )
        self.records.append(record)
        return record


def write_log(path: Path, records: Iterable[LogRecord | bytes]) -> Path:
    """Write a log; bytes stand in it as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join(
            one if isinstance(one, bytes) else encode_record(one) for one in records
        )
    )
    return path
