"""A line that takes its time, as ssh over half the world: `slow_line.py SECONDS PROGRAM...` delays each direction."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import sys
import termios
import time
import tty
from collections import deque

_STDIN, _STDOUT = 0, 1


def _run(delay: float, program: list[str]) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(program[0], program)
    size = fcntl.ioctl(_STDIN, termios.TIOCGWINSZ, b"\0" * 8)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    tty.setraw(_STDIN)
    under_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        while under_way and under_way[0][0] <= time.monotonic():
            _, target, data = under_way.popleft()
            os.write(target, data)
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready, _, _ = select.select([_STDIN, terminal], [], [], wait)
        for source, target in ((_STDIN, terminal), (terminal, _STDOUT)):
            if source in ready:
                data = _read(source)
                if not data:
                    return
                under_way.append((time.monotonic() + delay, target, data))


def _read(source: int) -> bytes:
    try:
        return os.read(source, 65_536)
    except OSError:  # the program ended
        return b""


if __name__ == "__main__":
    _run(float(sys.argv[1]), sys.argv[2:])
