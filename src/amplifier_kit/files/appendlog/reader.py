"""Reading a log that somebody else may be writing: no lock is taken and nothing is mended."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from amplifier_kit.files.appendlog import _disk
from amplifier_kit.files.appendlog._lines import AppendedRecord
from amplifier_kit.files.appendlog._scan import Damage, Expected, scan
from amplifier_kit.files.open_flags import READ

__all__ = ["LogContent", "read_log"]


@attrs.frozen(kw_only=True)
class LogContent:
    """What a log holds: its records, and what could not be read.

    A tail that is damaged may be a record that is being written.
    """

    records: tuple[AppendedRecord, ...] = ()
    damage: tuple[Damage, ...] = ()


def read_log(path: Path, expected: Expected) -> LogContent:
    """Read what a log holds now; one that is not there holds nothing. It blocks: call it in a thread.

    Raises:
        LogFormatError: it is no log, one of something else, or a newer version's.
        OSError: it cannot be read, or is a link.
    """
    try:
        handle = os.open(path, READ)
    except FileNotFoundError:
        return LogContent()
    try:
        found = scan(path, _disk.read_all(handle), expected)
    finally:
        os.close(handle)
    return LogContent(records=tuple(found.records), damage=tuple(found.damage))
