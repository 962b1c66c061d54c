"""A command and everything that descends from it, as the program sees them: started, watched, ended together."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from uuid import uuid4

import anyio
import attrs

from amplifier_kit.processes._processtable import marked
from amplifier_kit.processes.commands import Command, CommandEnd
from amplifier_kit.processes.pythons import python_argv, start_python

__all__ = ["ProcessTree", "run_command"]

_PROGRAM: Final = "amplifier_kit.processes._keeper:main"
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_MARK: Final = "AMPLIFIER_PROCESS_TREE"
_CHUNK: Final = 1 << 16
_END_SECONDS: Final = 2.0
_SWEEPS: Final = 3
_LOOK_SECONDS: Final = 0.001


@attrs.define(eq=False)
class ProcessTree:
    """A running command with all its descendants, under a process that keeps them.

    Sessions, groups and double forks do not leave it (on Linux; elsewhere what makes itself a session may). It
    ends when the command does, when `aclose` is called, and when this program ends, however that happens. The
    command's standard input is empty, its `input`, or what `send` writes to one that is interactive.

    Its handles are `stdout` and `stderr`, or `None` where a log takes the output.
    """

    _process: subprocess.Popen[bytes]
    _control: socket.socket
    _mark: str
    _report: bytes = b""
    _ending: CommandEnd | None = None
    _input: int | None = None

    @classmethod
    def start(cls, command: Command) -> Self:
        """Start a command; whoever does calls `aclose`.

        Raises:
            OSError: the supervising process cannot be started.
        """
        mark = uuid4().hex
        order = attrs.asdict(command, recurse=False)
        order["environment"] = {**command.environment, _MARK: mark}
        ours, theirs = socket.socketpair()
        pipe = subprocess.PIPE
        if command.log is not None:
            pipe = subprocess.DEVNULL
        if command.interactive:
            reader, writer = os.pipe()
        else:
            reader, writer = (None, None)
        if reader is not None:
            order["input_handle"] = reader
        try:
            process = start_python(
                python_argv(_PROGRAM, root=_ROOT),
                stdin=theirs.fileno(),
                stdout=pipe,
                stderr=pipe,
                pass_fds=() if reader is None else (reader,),
            )
        except OSError:
            ours.close()
            if writer is not None:
                os.close(writer)
            raise
        finally:
            theirs.close()
            if reader is not None:
                os.close(reader)
        if writer is not None:
            os.set_blocking(writer, False)  # it has no other way to say it
        # a keeper that ended at once is noticed below
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.sendall(json.dumps(order).encode() + b"\n")
        ours.setblocking(False)  # noqa: FBT003  # the socket has no other way to say it
        return cls(process, ours, mark, input=writer)

    @property
    def stdout(self) -> int | None:
        """The handle of the command's output."""
        if self._process.stdout is None:
            return None
        return self._process.stdout.fileno()

    @property
    def stderr(self) -> int | None:
        """The handle of the command's error output."""
        if self._process.stderr is None:
            return None
        return self._process.stderr.fileno()

    @property
    def ending(self) -> CommandEnd | None:
        """How the command ended; `None` while it runs."""
        if self._ending is None and not self._receive():
            self._conclude()
        return self._ending

    async def wait(self) -> CommandEnd:
        """Wait until the command and all its descendants have ended."""
        while (ending := self.ending) is None:
            await anyio.wait_readable(self._control)
        return ending

    async def pump(self, handle: int | None, take: Callable[[bytes], object]) -> None:
        """Give everything that comes from a handle to a function, until the last holder has closed it."""
        while handle is not None:
            await anyio.wait_readable(handle)
            data = os.read(handle, _CHUNK)
            if not data:
                return
            take(data)

    async def send(self, data: bytes) -> None:
        """Write to the standard input of an interactive command; waits while the command does not read.

        Raises:
            BrokenPipeError: the command, or `close_input`, has closed it.
        """
        left = memoryview(data)
        while left:
            if self._input is None:
                raise BrokenPipeError(
                    errno.EPIPE, "the standard input of the command is closed"
                )
            try:
                left = left[os.write(self._input, left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._input)

    def close_input(self) -> None:
        """Close the standard input of an interactive command; closing it twice does nothing."""
        if self._input is not None:
            handle, self._input = self._input, None
            anyio.notify_closing(handle)
            os.close(handle)

    def stop(self) -> None:
        """Tell the keeper to end everything; returns at once."""
        with suppress(OSError):  # the keeper has ended
            self._control.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        """End everything and close the handles; takes at most some two seconds, also when cancelled."""
        self.stop()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_END_SECONDS):
                await self.wait()
            if self._ending is None:
                self._kill()
            while self._process.poll() is None:  # noqa: ASYNC110  # it has closed its handles, so this is soon over
                await anyio.sleep(_LOOK_SECONDS)
        self._control.close()
        self.close_input()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _receive(self) -> bool:
        """Take what the keeper has sent; return whether more may come."""
        try:
            while data := self._control.recv(_CHUNK):
                self._report += data
        except BlockingIOError:
            return True
        except OSError:  # the keeper was killed, or this end is closed
            return False
        return False

    def _conclude(self) -> None:
        if not self._report:
            self._kill()
            self._ending = CommandEnd(code=128 + signal.SIGKILL)
            return
        self._ending = CommandEnd(**json.loads(self._report))

    def _kill(self) -> None:
        """Kill by force what can be found: the keeper, its group, and whatever carries the mark."""
        found = {self._process.pid}
        for _ in range(_SWEEPS):  # what was killed may have started another just before
            for pid in found | set(marked(f"{_MARK}={self._mark}")):
                for kill in (os.killpg, os.kill):
                    # no group of that number, or nobody left in it
                    with suppress(OSError):
                        kill(pid, signal.SIGKILL)


async def run_command(
    command: Command,
    *,
    stdout: Callable[[bytes], object],
    stderr: Callable[[bytes], object],
    timeout: float | None = None,
) -> CommandEnd:
    """Run a command to its end; nothing of it is alive when this returns or is cancelled.

    Args:
        command: what to run.
        stdout: takes each piece of the output.
        stderr: takes each piece of the error output.
        timeout: seconds it may take; `None` for no limit. What it put out before is handed on all the same.

    Raises:
        OSError: no process can be started.
    """
    tree = ProcessTree.start(command)
    try:
        with anyio.move_on_after(timeout) as scope:
            await _follow(tree, stdout, stderr)
        if scope.cancelled_caught:
            tree.stop()
            with anyio.move_on_after(_END_SECONDS):
                await _follow(tree, stdout, stderr)
        ending = tree.ending or CommandEnd(code=128 + signal.SIGKILL)
        return attrs.evolve(ending, timed_out=scope.cancelled_caught)
    finally:
        await tree.aclose()


async def _follow(
    tree: ProcessTree,
    stdout: Callable[[bytes], object],
    stderr: Callable[[bytes], object],
) -> None:
    async with anyio.create_task_group() as pumps:
        pumps.start_soon(tree.pump, tree.stdout, stdout)
        pumps.start_soon(tree.pump, tree.stderr, stderr)
        # Beside the pumps: when the keeper itself is killed, this is what ends those who hold the pipes.
        await tree.wait()
