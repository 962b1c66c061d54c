"""Running a module's code in a process of its own: whatever it does there is reported, not suffered.

The child gets its task on standard input, which then stays open: the child ends itself when it closes, so that
nothing outlives whoever asked. What it found it writes, line by line, into a file of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Final

import attrs

from amplifier.validation.report import CheckResult
from amplifier_kit.processes import python_argv, python_environment, start_python
from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ChildRun", "ChildTask", "run_child"]

_CHILD: Final = "amplifier.validation._child:main"

_FRAME: Final = re.compile(
    r'^  File "(?P<file>.+)", line (?P<line>\d+) in ', re.MULTILINE
)
GRACE: Final = 15.0
"""Seconds in which a child must begin, and beyond its deadlines must have ended itself."""

_KEPT: Final = 100_000
"""How many bytes are read of what the module printed."""


@attrs.frozen(kw_only=True)
class ChildTask:
    """What a child does.

    Args:
        module: the module's id.
        target: what its entry point names.
        location: the folder or file of its top-level package; `None` if that is not known.
        type: the type it is to be checked as; `None` for the one it declares or its id suggests.
        config: its configuration.
        samples: what the author gives to the behaviours, as `[tool.amplifier.validate]` has it.
        leave_out: behaviours that do not hold of the module, by id, each with the reason.
        backend: the event loop.
        timeout: seconds that one step may take.
        behaviors: try the behaviours of its type, instead of looking at its structure.
        skip: the ids of behaviours that were tried already.
    """

    module: str
    target: str
    location: Path | None = None
    type: str | None = None
    config: Mapping[str, JSONValue] = attrs.field(factory=dict)
    samples: Mapping[str, JSONValue] = attrs.field(factory=dict)
    leave_out: Mapping[str, JSONValue] = attrs.field(factory=dict)
    backend: str = "asyncio"
    timeout: float = 30.0
    behaviors: bool = False
    skip: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ChildRun:
    """What became of a child.

    Args:
        results: what its checks found.
        type: the type as which it checked the module; `None` if it did not get so far.
        running: the check that ran when the process ended early.
        ending: why it ended early; `None` if it came to its end.
        place: where the module's code was then, if that is known.
        stdout: the first line that the module printed; empty if it printed nothing.
        backend: the event loop; `None` for what does not depend on it.
    """

    results: tuple[CheckResult, ...] = ()
    type: str | None = None
    running: str | None = None
    ending: str | None = None
    place: str | None = None
    stdout: str = ""
    backend: str | None = None


def run_child(task: ChildTask) -> ChildRun:
    """Run a task in a child process, in an empty folder, and wait for its end.

    The processes that it left are killed, and its temporary files are removed. A step that takes longer than the task's
    timeout ends the child.
    """
    with (
        _empty_folder() as folder,
        _empty_folder() as scratch,
        _temporary_files() as (found, out, err),
    ):
        # Findings have a file of their own: the module may print, and close, anything.
        added = {"AMPLIFIER_VALIDATE_FD": str(found.fileno()), "TMPDIR": scratch}
        process = start_python(
            python_argv(_CHILD, packages=True),
            stdout=out,
            stderr=err,
            pass_fds=(found.fileno(),),
            directory=folder,
            environment=python_environment(added=added),
        )
        try:
            code = _converse(process, task, found)
        finally:
            # the group is gone already
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _read(task, code, found, _first(out), _last(err))


def _empty_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="amplifier-validate-", ignore_cleanup_errors=True)


@contextmanager
def _temporary_files() -> Iterator[tuple[IO[bytes], IO[bytes], IO[bytes]]]:
    with TemporaryFile() as found, TemporaryFile() as out, TemporaryFile() as err:
        yield found, out, err


def _converse(
    process: subprocess.Popen[bytes], task: ChildTask, found: IO[bytes]
) -> int | None:
    """Give the child its task and wait; standard input stays open meanwhile. `None` means that it hangs."""
    assert process.stdin is not None
    # open until the child has ended: when it closes the child takes its end for ours
    with process.stdin:
        # a child that died at once is known by its exit code
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(to_json(task)).encode() + b"\n")
            process.stdin.flush()
        return _wait(process, found, GRACE + 3 * task.timeout)


def _wait(
    process: subprocess.Popen[bytes], found: IO[bytes], silence: float
) -> int | None:
    """Wait for the child's end, or until it has written nothing for so many seconds: its own deadline failed."""
    # Time alone says nothing: a slow machine may need long, and writes all the while.
    written = 0
    while True:
        try:
            return process.wait(silence)
        except subprocess.TimeoutExpired:
            before, written = written, os.fstat(found.fileno()).st_size
            if written == before:
                return None


def _first(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read(_KEPT).decode("utf-8", "replace").splitlines()
    return next((line.strip() for line in lines if line.strip()), "")


def _last(file: IO[bytes]) -> str:
    """Return the end of a file, which may be long."""
    size = file.seek(0, os.SEEK_END)
    # a traceback stands at the end, whatever was printed before it
    file.seek(max(0, size - _KEPT))
    return file.read().decode("utf-8", "replace")


def _records(file: IO[bytes]) -> Iterator[JSONValue]:
    """Yield what the child wrote down; a line that its end cut off is left out."""
    file.seek(0)
    for line in file:
        # the last line may be torn, as the process was killed
        with suppress(ValueError):
            yield json.loads(line)


def _read(
    task: ChildTask, code: int | None, found: IO[bytes], printed: str, err: str
) -> ChildRun:
    results: list[CheckResult] = []
    running: str | None = None
    kind: str | None = None
    done = False
    for record in _records(found):
        match record:
            case {"begin": str(check)}:
                running = check
            case {"result": dict(result)}:
                results.append(from_json(result, CheckResult))
            case {"end": _}:
                running = None
            case {"type": str(name)}:
                kind = name
            case _:
                done = True
    run = ChildRun(
        results=tuple(results),
        type=kind,
        running=running,
        stdout=printed,
        backend=task.backend if task.behaviors else None,
    )
    if done:
        return run
    ending, place = _ending(code, err, task.timeout), _place(err, task.location)
    return attrs.evolve(run, ending=ending, place=place)


def _ending(code: int | None, err: str, timeout: float) -> str:
    if code is None:
        return f"ran beyond the {timeout:g} s that a step may take, and prevented its deadline from ending it"
    # faulthandler says so when the deadline of a step ends the process
    if "Timeout (" in err and code == 1:
        return f"took longer than {timeout:g} s without giving way"
    if code < 0:
        name = next(
            (each.name for each in signal.Signals if each == -code), f"signal {-code}"
        )
        return f"ended the process by {name}"
    last = next(
        (line.strip() for line in reversed(err.splitlines()) if line.strip()), ""
    )
    if last and code:
        said = f"; the last line on standard error: {last[:300]}"
    else:
        said = ""
    return f"ended the process with exit code {code}{said}"


def _place(err: str, location: Path | None) -> str | None:
    """Find the innermost line of the module itself in what the interpreter wrote when it ended."""
    # faulthandler writes the innermost frame first
    for frame in _FRAME.finditer(err):
        if location is not None and Path(frame["file"]).is_relative_to(location):
            return f"{frame['file']}:{frame['line']}"
    return None
