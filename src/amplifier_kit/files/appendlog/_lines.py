"""Records as lines: JSON that begins with a checksum of all that follows in the line.

The first line is the header, a record of the kind `log` that says what the file is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zlib import crc32

from amplifier_kit.files.appendlog._values import decode, encode
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.stores import LogEntry

__all__ = [
    "BEGIN",
    "HEADER",
    "decode_line",
    "encode_line",
    "header_line",
    "is_sealed",
]

HEADER: Final = "log"
"""The kind of the header; no other record has it."""

FORMAT: Final = "amplifier-log"
FORMAT_VERSION: Final = 1

BEGIN: Final = b'{"crc":"'
"""How every line begins. Inside a record's texts it cannot stand: there quotes are escaped."""

_DIGITS: Final = slice(len(BEGIN), len(BEGIN) + 8)
_BODY: Final = len(BEGIN) + len(b'00000000",')


def encode_line(record: LogEntry) -> bytes:
    """Write a record, without the line break.

    Raises:
        ValueError: its data has no JSON form.
    """
    body = b'"kind":%b,"at":%b,"data":%b}' % (
        encode(record.kind),
        encode(record.at),
        encode(record.data),
    )
    return b'%b%08x",%b' % (BEGIN, crc32(body), body)


def decode_line(line: bytes) -> LogEntry:
    """Read a record.

    Raises:
        ValueError: the line is damaged, or it is none of a log.
    """
    if not line.startswith(BEGIN) or not is_sealed(line):
        raise ValueError("the checksum does not fit")
    value = decode(line)
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise ValueError("it is no record")
    at = value.get("at")
    return LogEntry(
        kind=str(value["kind"]),
        data=value.get("data"),
        at=at if isinstance(at, (int, float)) else 0.0,
    )


def is_sealed(line: bytes) -> bool:
    """Tell whether the checksum of a line fits, whatever its first bytes have become."""
    return line[_DIGITS] == b"%08x" % crc32(memoryview(line)[_BODY:])


def header_line(holds: str, version: int, at: float) -> bytes:
    """Write the header of a log that holds this content in this version."""
    data: Mapping[str, JSONValue] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "holds": {"name": holds, "version": version},
    }
    return encode_line(LogEntry(kind=HEADER, data=data, at=at))
