"""The results of trials, and the file to which each is appended when its trial ends.

A result is one line of JSON, written with one call. A process that is killed in the middle of a line leaves
half a line: the next one begins a line of its own and passes over what it cannot read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier_kit.files.handles import closing_handle
from amplifier_sdk.chat import Usage
from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import Value

__all__ = ["NamedScore", "ResultFile", "TrialResult"]

_MODE: Final = 0o600  # answers may quote what a prompt should not have said


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NamedScore(Value):
    """A score, under the name of its scorer."""

    name: str
    value: float
    passed: bool
    reason: str = ""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TrialResult(Value):
    """What a trial came to.

    Args:
        key: stands for all that the result depends on; another agent, case or scorer has another one.
        case: the name of the case.
        number: which repetition it was, from 1.
        inputs: what was asked, as JSON data.
        expected: what the case expected.
        output: the answer as JSON data, or as text where it has no such form.
        scores: what each scorer said; those before one that raised.
        error: what the run or a scorer raised; empty where nothing did.
        duration: how long the run took, in seconds.
        usage: what the run has used; `None` where that is not known.
        scoring_usage: what scorers have used.
        tool_calls: the names of the tools that were called.
    """

    key: str
    case: str
    number: int
    inputs: JSONValue = None
    expected: JSONValue = None
    output: JSONValue = None
    scores: tuple[NamedScore, ...] = ()
    error: str = ""
    duration: float
    usage: Usage | None = None
    scoring_usage: Usage | None = None
    tool_calls: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing was raised and every scorer let it pass."""
        return not self.error and all(score.passed for score in self.scores)


@attrs.define(eq=False)
class ResultFile:
    """A file of results.

    Args:
        results: what it held when it was opened, by key; of two with one key the later.
        damaged: how many of its lines are no results.
    """

    results: dict[str, TrialResult] = attrs.field(factory=dict)
    damaged: int = 0
    _descriptor: int | None = None

    @classmethod
    @contextmanager
    def open(cls, path: Path | None) -> Iterator[Self]:
        """Read a file and append to it in the block; without a path nothing is stored.

        Raises:
            OSError: the file cannot be read or written.
        """
        if path is None:
            yield cls()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # O_APPEND, so that two processes at one file lose nothing of each other's
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        with closing_handle(os.open(path, flags, _MODE)) as descriptor:
            data = path.read_bytes()
            if data and not data.endswith(b"\n"):
                _write(descriptor, b"\n")
            file = cls(descriptor=descriptor)
            for line in data.splitlines():
                file._read(line)
            yield file

    def append(self, result: TrialResult) -> None:
        """Add a result, which a process that is killed after this has stored.

        It does not wait for an event loop: a result that was paid for is not lost to a cancellation.
        """
        if self._descriptor is not None:
            line = json.dumps(to_json(result), separators=(",", ":"))
            _write(self._descriptor, line.encode() + b"\n")

    def _read(self, line: bytes) -> None:
        if not line:
            return
        try:
            result = from_json(json.loads(line), TrialResult)
        except (ValueError, RecursionError):
            self.damaged += 1
            return
        self.results[result.key] = result


def _write(descriptor: int, data: bytes) -> None:
    # a full disk or a signal may leave a part of it to be written
    while data:
        data = data[os.write(descriptor, data) :]
