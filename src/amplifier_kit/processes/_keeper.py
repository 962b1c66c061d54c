"""The process between a program and its command: nothing that descends from it outlives it.

It is the subreaper of the command on Linux: a process whose parent ends becomes its child, whatever sessions and
groups it has made for itself. It ends them all when the command ends, when it is asked to, and when the other
end of its control socket is closed, which the system does even for a program that was killed. It runs without
installed packages: what it imports is of the standard library, or of this package and of that alone.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Final, Self

from amplifier_kit.processes._processtable import descendants, process_table
from amplifier_kit.processes._spawn import Action, spawn

__all__ = ["Keeper", "keep", "main"]

_PR_SET_CHILD_SUBREAPER: Final = 36
_REPORT_HANDLE: Final = 60
_KILL_SECONDS: Final = 1.5
_LEAVING_SECONDS: Final = 0.05
_POLL_SECONDS: Final = 0.01
_CHUNK: Final = 1 << 16


def main() -> None:
    """Keep the command that the socket on standard input orders, and end with this process."""
    os._exit(keep(socket.socket(fileno=0)))


def keep(control: socket.socket) -> int:
    """Run the ordered command to its end and report how it ended on the socket; return 0."""
    order = json.loads(_line(control))
    with Keeper(control, order) as keeper:
        report = keeper.run()
    with suppress(OSError):  # whoever ordered it may be gone
        control.sendall(json.dumps(report).encode() + b"\n")
    return 0


def _line(control: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        piece = control.recv(_CHUNK)
        if not piece:
            sys.exit("no order was given")
        data += piece
    return data


class Keeper:
    """One command and all that descends from it; leaving the block closes the handles."""

    def __init__(self, control: socket.socket, order: dict[str, object]) -> None:
        self._control = control
        self._order = order
        self._before = frozenset(descendants(os.getpid(), process_table()))
        self._status: int | None = None
        self._pid = 0
        self._handles: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            os.close(handle)

    def run(self) -> dict[str, object]:
        """Start the command, wait for its end or the order to end it, and kill what is left."""
        if sys.platform == "linux":
            import ctypes  # Linux alone needs it

            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        place, report = self._pipe()
        try:
            output = self._start(report)
        except (OSError, ValueError) as error:
            return {"code": 127, "error": _words(error)}
        finally:
            self._close(report)
        was_stopped = self._wait(output)
        if not was_stopped:
            # what is about to end was not left running
            self._until_none(_LEAVING_SECONDS)
        leftover = 0
        if not was_stopped:
            leftover = len(self._alive())
        survivors = self._end(float(str(self._order["grace"])))
        self._pump(output)
        os.set_blocking(place, False)
        with suppress(BlockingIOError):
            where = os.read(place, _CHUNK).decode(errors="surrogateescape").splitlines()
            return {
                "code": self._code(),
                "directory": where[-1] if where else None,
                "leftover": leftover,
                **survivors,
            }
        return {"code": self._code(), "leftover": leftover, **survivors}

    def _pipe(self) -> tuple[int, int]:
        pair = os.pipe()
        self._handles += pair
        return pair

    def _close(self, handle: int) -> None:
        os.close(handle)
        self._handles.remove(handle)

    def _holding(self, text: str) -> int:
        """Return the handle of a file without a name that holds a text, at its beginning."""
        if hasattr(os, "memfd_create"):
            handle = os.memfd_create("input")
        else:
            from tempfile import TemporaryFile  # other systems than Linux have this

            with TemporaryFile() as file:
                handle = os.dup(file.fileno())
        self._handles.append(handle)
        data = memoryview(text.encode("utf-8", "surrogatepass"))
        while data:
            data = data[os.write(handle, data) :]
        os.lseek(handle, 0, os.SEEK_SET)
        return handle

    def _start(self, report: int) -> int | None:
        """Start the command in a session of its own; return what its output is read from, if the keeper does."""
        order = self._order
        os.chdir(str(order["directory"]))
        source = self._source()
        actions: list[Action] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
            if source is None
            else (os.POSIX_SPAWN_DUP2, source, 0),
            (os.POSIX_SPAWN_DUP2, report, _REPORT_HANDLE),
        ]
        output = writer = None
        if order.get("log"):
            # background commands have one
            from amplifier_kit.processes._logwriter import OutputLogWriter

            output, writer = self._pipe()
            os.set_blocking(output, False)
            actions += [
                (os.POSIX_SPAWN_DUP2, writer, 1),
                (os.POSIX_SPAWN_DUP2, writer, 2),
            ]
            self._log = OutputLogWriter(
                str(order["log"]), int(str(order["max_log_bytes"]))
            )
        argv, environment = list(map(str, order["argv"])), dict(order["environment"])  # type: ignore[call-overload]  # as `trees` wrote it
        self._pid = spawn(argv, environment, actions, order.get("restrictions"))
        for handle in (source, writer):
            # that the other end was closed is noticed when nobody else holds it
            if handle is not None:
                self._close(handle)
        return output

    def _source(self) -> int | None:
        """Return the handle of the command's input; `None` where that is empty."""
        handle = self._order.get("input_handle")
        if handle is None:
            text = self._order.get("input")
            if text:
                return self._holding(str(text))
            return None
        source = int(str(handle))
        self._handles.append(source)
        os.set_inheritable(source, False)  # noqa: FBT003  # the command has it by its number 0 alone
        return source

    def _wait(self, output: int | None) -> bool:
        """Wait until the command ends; return whether it was asked to."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        timeout: float | None = _POLL_SECONDS * 1000
        if hasattr(os, "pidfd_open"):
            ended = os.pidfd_open(self._pid)
            self._handles.append(ended)
            poll.register(ended, select.POLLIN)
            timeout = None
        if output is not None:
            poll.register(output, select.POLLIN)
        while not self._collect(self._pid):
            ready = {handle for handle, _ in poll.poll(timeout)}
            if self._control.fileno() in ready:
                return True
            if output in ready and not self._pump(output):
                poll.unregister(output)
        return False

    def _pump(self, output: int | None) -> bool:
        """Write what the command put out to its log; return whether there may be more."""
        if output is None:
            return False
        with suppress(BlockingIOError):
            while data := os.read(output, _CHUNK):
                self._log.write(data)
            return False
        return True

    def _end(self, grace: float) -> dict[str, object]:
        """End everything that is left: first with a request, then by force; tell how much could not be ended."""
        if self._alive():
            self._signal(signal.SIGTERM)
            self._until_none(grace)
        deadline = time.monotonic() + _KILL_SECONDS
        while self._alive() and time.monotonic() < deadline:
            self._signal(signal.SIGKILL)
            self._until_none(_POLL_SECONDS)
        return {"survivors": len(self._alive())}

    def _until_none(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._alive() and time.monotonic() < deadline:
            time.sleep(min(_POLL_SECONDS / 2, seconds))

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._alive():
            with suppress(OSError):  # it ended meanwhile, or is another user's
                os.kill(pid, number)

    def _alive(self) -> list[int]:
        """Return the processes that still run below this one, and collect those that do not."""
        table = process_table()
        below = descendants(os.getpid(), table, but=self._before)
        for pid in below:
            if table[pid].ended and table[pid].parent == os.getpid():
                self._collect(pid)
        return [pid for pid in below if not table[pid].ended]

    def _collect(self, pid: int) -> bool:
        """Collect a child of this process if it has ended."""
        collected, status = os.waitpid(pid, os.WNOHANG)
        if collected == self._pid:
            self._status = status
        return collected == pid

    def _code(self) -> int:
        code = -signal.SIGKILL
        if self._status is not None:
            code = os.waitstatus_to_exitcode(self._status)
        if code >= 0:
            return code
        return 128 - code


def _words(error: OSError | ValueError) -> str:
    """Say why a command could not be started, with the folder or the program that it is about."""
    reason = getattr(error, "strerror", None) or str(error)
    name = getattr(error, "filename", None)
    if name is None:
        return reason
    return f"{reason}: {name!r}"
