"""Making the trace page of a session: its logs are read, put together and written as a file for the person alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.logs.library import SessionLog
from amplifier.app.logs.merge import Logs
from amplifier.app.logs.selection import LineFilter
from amplifier.app.traces.builder import build_trace
from amplifier.app.traces.model import SessionTrace
from amplifier.app.traces.page import render_page
from amplifier_kit.files.atomic import write_private

__all__ = ["PAGE_FILE", "read_trace", "write_page"]

PAGE_FILE: Final = "trace.html"
"""The name of a session's page in its folder."""


def read_trace(logs: Sequence[SessionLog]) -> SessionTrace:
    """Read the logs of a session, which is the first, and of those it made.

    Raises:
        OSError: one of them cannot be read.
    """
    with Logs.take([log.path for log in logs]) as taken:
        trace = build_trace(taken.select(LineFilter()), logs[0].session_id)
        taken.count_torn()
        return attrs.evolve(trace, damaged=taken.damaged)


def write_page(trace: SessionTrace, path: Path) -> None:
    """Write the page of a trace, in place of an earlier one; for the person alone.

    Raises:
        OSError: the system refuses.
    """
    write_private(path, render_page(trace).encode())
