"""The command line in this process, and as one of its own, with a terminal or without one."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import IO, Final

import attrs
import pytest
from click.testing import CliRunner, Result

from amplifier.cli import main
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "BACKENDS",
    "PROGRAM",
    "Terminal",
    "call",
    "open_terminal",
    "read_until",
    "run",
    "start",
    "write_plan",
]

PROGRAM: Final = (sys.executable, "-m", "amplifier")
TIMEOUT: Final = 30.0
"""Seconds after which a process that says nothing has failed."""


BACKENDS: Final = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def call(*arguments: str, expect: int = 0, input: str | None = None) -> Result:
    """Run a command in this process; it ends with the code that is expected."""
    result = CliRunner().invoke(main, list(arguments), input=input)
    assert result.exit_code == expect, result.output
    return result


def write_plan(folder: Path, responses: Sequence[JSONValue], *modules: str) -> Path:
    """Write a plan whose provider is scripted, with some modules besides: tools, and providers by their prefix."""
    scripted: JSONValue = {
        "module": "provider-scripted",
        "config": {"responses": responses},
    }
    plan: JSONValue = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            scripted,
            *(name for name in modules if name.startswith("provider-")),
        ],
        "tools": [name for name in modules if name.startswith("tool-")],
        "hooks": [name for name in modules if name.startswith("hooks-")],
    }
    path = folder / "plan.json"
    path.write_text(json.dumps(plan), "utf-8")
    return path


def run(*arguments: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; options are `input` and environment variables."""
    given = options.pop("input", "")
    return subprocess.run(
        [*PROGRAM, *arguments],
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **options},
        timeout=TIMEOUT,
    )


@contextmanager
def start(
    *arguments: str, ignored: Sequence[int] = (), **streams: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a process group of its own; it is killed at the end of the block.

    Args:
        arguments: what stands behind the program's name.
        ignored: signals that the process inherits as ignored.
        streams: `stdin`, `stdout` and `stderr` in place of nothing and two pipes.
    """
    code = "import os, signal, sys\nfor n in sys.argv[1].split(): signal.signal(int(n), signal.SIG_IGN)\n"
    code += "os.execv(sys.argv[2], sys.argv[2:])"
    wrapper = (
        [sys.executable, "-c", code, " ".join(str(int(number)) for number in ignored)]
        if ignored
        else []
    )
    given = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        **streams,
    }
    process = subprocess.Popen(
        [*wrapper, *PROGRAM, *arguments],
        stdin=given["stdin"],
        stdout=given["stdout"],
        stderr=given["stderr"],
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def read_until(stream: IO[bytes] | None, text: str) -> str:
    """Read a process's pipe until a text has come; return what was read."""
    assert stream is not None
    return "".join(_read_until(stream.fileno(), text, ""))


def _read_until(descriptor: int, text: str, seen: str) -> tuple[str, str]:
    """Return what came up to the end of the text, and what came behind it."""
    end = monotonic() + TIMEOUT
    while text not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - monotonic()))
        data = b""
        if ready:
            with suppress(OSError):  # the terminal's other side is closed
                data = os.read(descriptor, 65_536)
        assert data, f"{text!r} did not come; there was {seen!r}"
        seen += data.decode("utf-8", "replace")
    before, _, after = seen.partition(text)
    return before + text, after


@attrs.define(eq=False)
class Terminal:
    """A command at a pseudo terminal."""

    process: int
    descriptor: int
    _ahead: str = ""

    def read_until(self, text: str) -> str:
        """Read until a text is on the screen; return what came up to its end."""
        seen, self._ahead = _read_until(self.descriptor, text, self._ahead)
        return seen

    def read_prompt(self) -> str:
        """Read until the next prompt takes keys."""
        return self.read_until("\x1b[?2004h") + self.read_until(">")

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.descriptor, keys.encode())

    def hang_up(self) -> None:
        """Close the terminal under the command."""
        os.close(self.descriptor)

    def wait(self) -> int:
        """Read to the end and return the exit code."""
        with suppress(OSError):  # the end of a terminal is an error
            while data := os.read(self.descriptor, 65_536):
                self._ahead += data.decode("utf-8", "replace")
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@contextmanager
def open_terminal(
    *command: str, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Start a command at a terminal of its own; its end hangs it up."""
    process, descriptor = pty.fork()
    if process == 0:  # the child: nothing but exec, since the parent may have threads
        settings = {
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            **(environment or {}),
        }
        os.execve(command[0], command, {**os.environ, **settings})
    try:
        yield Terminal(process, descriptor)
    finally:
        with suppress(OSError):  # hung up already
            os.close(descriptor)
        with suppress(ChildProcessError):  # waited for already
            os.waitpid(process, 0)
