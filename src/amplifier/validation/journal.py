"""What a child process writes down while it checks a module.

Each step has a deadline that needs no help from the module: a timer of the interpreter ends the process and
shows where it was.
"""

from __future__ import annotations

import faulthandler
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

import attrs

from amplifier.validation.report import CheckResult
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["FindingsJournal"]


@attrs.define(eq=False)
class FindingsJournal:
    """What was found so far, written through at once: a crash loses nothing.

    Args:
        file: where it is written.
        timeout: seconds that a step may take.
    """

    file: IO[str]
    timeout: float

    def add(self, result: CheckResult) -> None:
        """Write down a result."""
        self._write({"result": result.to_json()})

    def note_type(self, kind: str) -> None:
        """Write down as which type the module is checked."""
        self._write({"type": kind})

    def finish(self) -> None:
        """Write down that nothing is left to do."""
        self._write({"done": True})

    @contextmanager
    def step(self, check: str, *, times: float = 1.0) -> Iterator[None]:
        """Run a check inside the block; one that blocks the process ends it.

        Args:
            check: the id.
            times: how many timeouts it may take, for a check that has deadlines of its own.
        """
        # before the check: when the process ends in it, this says which one it was
        self._write({"begin": check})
        # standard error itself
        faulthandler.dump_traceback_later(self.timeout * times, exit=True, file=2)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            self._write({"end": check})

    def _write(self, record: Mapping[str, JSONValue]) -> None:
        self.file.write(json.dumps(record) + "\n")
        # a killed process loses what Python holds, not what the system has
        self.file.flush()
