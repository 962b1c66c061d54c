"""The log of a session: one JSON object a line, the same for who writes it and who reads it.

A line has `ts`, `lvl`, `schema`, `event`, `seq`, `run`, `session_id`, what an event carries of `parent_id`, `turn_id`,
`span_id`, `parent_span_id` and `iteration`, and the rest of the event under `data`. Lines are ordered by their place;
`seq` counts them within a `run`, which is one session of one process, so that a gap is seen.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import attrs

from amplifier_kit.logs.files import open_log
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import Value

__all__ = [
    "LEVELS",
    "LOG_FILE",
    "LOG_SCHEMA",
    "LogLevel",
    "LogRecord",
    "decode_record",
    "encode_record",
    "read_log",
    "roles_of",
]

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
"""How much a record matters."""

LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""The levels, the least first."""

_SHOWN: Final = 4
"""How many roles are logged of either end of a history."""

LOG_SCHEMA: Final[Mapping[str, JSONValue]] = {"name": "amplifier.log", "ver": "1.0.0"}
"""What every line names as its form; another first number is another form."""

LOG_FILE: Final = "events.jsonl"
"""The name of a session's log in its folder."""

_OWN: Final = ("parent_id", "turn_id", "span_id", "parent_span_id", "iteration")
_SURROGATE: Final = "[\ud800-\udfff]"
# `json.loads` asks each line anew what it is and how it is to be decoded
_decoded: Final = json.JSONDecoder().decode


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LogRecord(Value):
    """One line of a log; `ts` is ISO 8601 in UTC, `run` identifies one of the process's runs of a session."""

    ts: str
    level: LogLevel
    event: str
    session_id: str
    seq: int
    run: str = ""
    parent_id: str | None = None
    turn_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    iteration: int | None = None
    data: Mapping[str, JSONValue] = attrs.field(factory=dict)


def encode_record(record: LogRecord) -> bytes:
    """Write a record as one line of JSON with its line break.

    Numbers that are not finite become texts, and halves of surrogate pairs their escapes as text: every reader of
    JSON takes the line.

    Raises:
        TypeError: the data holds what JSON lacks.
        ValueError: the data holds itself.
    """
    line: JSONObject = {
        "ts": record.ts,
        "lvl": record.level.upper(),
        "schema": LOG_SCHEMA,
        "event": record.event,
        "seq": record.seq,
        "run": record.run,
        "session_id": record.session_id,
    }
    line |= {
        name: value for name in _OWN if (value := getattr(record, name)) is not None
    }
    line["data"] = record.data
    try:
        return _encoded(line)
    except ValueError:
        # Few lines hold such values, and the walk is dear: only these pay for it.
        return _encoded(_finite(line))


def _encoded(line: JSONValue) -> bytes:
    text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (text + "\n").encode()


def _finite(value: JSONValue) -> JSONValue:
    if isinstance(value, str):
        return re.sub(_SURROGATE, lambda half: f"\\u{ord(half[0]):04x}", value)
    if isinstance(value, float):
        # false of infinities and of NaN
        if value - value == 0:
            return value
        return str(value)
    if isinstance(value, Mapping):
        return {str(_finite(key)): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def decode_record(line: bytes | str) -> LogRecord:
    """Read a line.

    Raises:
        ValueError: it is no record of this form.
    """
    try:
        if isinstance(line, bytes):  # `json` would guess at the encoding of each line
            line = line.decode("utf-8", "surrogatepass")
        found = _decoded(line)
        schema, level, data = found["schema"], found["lvl"].lower(), found["data"]
        # another first number may mean something else by the same keys
        if (
            schema["name"] != LOG_SCHEMA["name"]
            or not schema["ver"].startswith("1.")
            or level not in LEVELS
        ):
            raise ValueError(f"schema {schema!r}, level {level!r}")
        record = LogRecord(
            ts=found["ts"],
            level=level,
            event=found["event"],
            session_id=found["session_id"],
            seq=int(found["seq"]),
            run=found.get("run", ""),
            parent_id=found.get("parent_id"),
            turn_id=found.get("turn_id"),
            span_id=found.get("span_id"),
            parent_span_id=found.get("parent_span_id"),
            iteration=found.get("iteration"),
            data=data,
        )
        _check(record)
        return record
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        # a line is whatever stands in the file: of another program, or cut by a crash
        raise ValueError(f"This is no line of a log of version 1: {error}") from None


def _check(record: LogRecord) -> None:
    """Refuse a record whose fields are of other types than they say."""
    if not isinstance(record.data, dict):
        raise TypeError(f"the data is no object: {record.data!r:.40}")
    for text in (record.ts, record.event, record.session_id, record.run):
        if not isinstance(text, str):
            raise TypeError(f"a time, an id or a name is no text: {text!r:.40}")
    for id_ in (
        record.parent_id,
        record.turn_id,
        record.span_id,
        record.parent_span_id,
    ):
        if id_ is not None and not isinstance(id_, str):
            raise TypeError(f"an id is no text: {id_!r:.40}")
    if record.iteration is not None and not isinstance(record.iteration, int):
        raise TypeError(f"iteration {record.iteration!r:.40}")


def roles_of(messages: Sequence[object]) -> str:
    """Say how many messages there are and in which order their roles come; of many, the first and the last ones.

    Shows how a request was put together without what it says: `4 messages: system, developer, developer, user`.
    """
    count = len(messages)
    if count <= 2 * _SHOWN:
        shown = [*range(count)]
    else:
        shown = [*range(_SHOWN), None, *range(count - _SHOWN, count)]
    roles = ", ".join(
        "…" if index is None else _role(messages[index]) for index in shown
    )
    return f"{count} message{'' if count == 1 else 's'}{': ' if roles else ''}{roles}"


def _role(message: object) -> str:
    if isinstance(message, Mapping):
        return str(message.get("role"))
    return type(message).__name__


def read_log(path: Path) -> Iterator[LogRecord]:
    """Yield the records of a log as it is now, those of its earlier files first; lines that are none are passed over.

    Raises:
        FileNotFoundError: there is no log.
    """
    with open_log(path) as files:
        if not files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        for line in chain.from_iterable(files):
            try:
                record = decode_record(line)
            except ValueError:
                continue
            yield record
