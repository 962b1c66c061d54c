"""The record of what was decided: one line of JSON each, appended, for its owner's eyes, without secrets."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import attrs

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import ADD_TO
from amplifier_kit.files.private import open_private_folder, require_private
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.threads import run_blocking

__all__ = ["AnswersFile"]


@attrs.frozen
class AnswersFile:
    """The file, shared by all sessions; a line is written in one piece."""

    path: Path

    async def append(self, entry: JSONObject) -> None:
        """Append a line; `time` is added, in UTC.

        Raises:
            OSError: it cannot be written, or others may write the file.
        """
        line = json.dumps(
            {"time": datetime.now(UTC).isoformat(), **entry},
            ensure_ascii=True,
            default=repr,
        )
        await run_blocking(
            partial(self._write, f"{line}\n".encode()), name="approval.record"
        )

    def _write(self, line: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = self.path.name
        # Readable, to check the last byte; not blocking, in case the name is a pipe's.
        flags = ADD_TO | os.O_RDWR | os.O_NONBLOCK
        with (
            open_private_folder(self.path.parent) as folder,
            closing_handle(os.open(name, flags, 0o600, dir_fd=folder)) as handle,
        ):
            status = os.fstat(handle)
            require_private(self.path, status)
            if status.st_size and os.pread(handle, 1, status.st_size - 1) != b"\n":
                line = b"\n" + line  # an earlier line was cut off
            if os.write(handle, line) < len(line):
                # The rest is not written after it: another session's line may stand
                # there by now.
                raise OSError(f"{self.path}: the disk took a part of the line only")
