"""A terminal of a program's own, in tmux: keys go in, and what is on the screen comes out."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from tests.cli.programs import PROGRAM, TIMEOUT

__all__ = ["SCROLLED", "Pane", "pane"]

_SLOW_LINE: Final = Path(__file__).with_name("slow_line.py")
SCROLLED: Final = ("-S", "-")
"""The options that add to the screen what has left it at the top."""


@attrs.define(eq=False)
class Pane:
    """A terminal with a command in it; what that writes comes out of a pipe as well, so that it can be awaited."""

    socket: Path
    news: int

    def call(self, *arguments: str) -> str:
        """Give tmux a command and return what it answers."""
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), "-f", "/dev/null", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        return done.stdout

    def type(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        self.call("send-keys", "-t", "chat", *keys)

    def screen(self, *options: str) -> str:
        """Return what is on the screen."""
        return self.call("capture-pane", "-p", "-t", "chat", *options)

    def until(self, condition: Callable[[str], object], *options: str) -> str:
        """Look until the screen is as expected."""
        while not condition(seen := self.screen(*options)):
            ready, _, _ = select.select([self.news], [], [], TIMEOUT)
            assert ready, f"it did not come; there was {seen}"
            os.read(self.news, 65_536)
        return seen


@contextmanager
def pane(
    folder: Path,
    plan: Path,
    *,
    term: str = "tmux-256color",
    size: tuple[int, int] = (80, 24),
    project: Path | None = None,
    delay: float = 0.0,
    **environment: str,
) -> Iterator[Pane]:
    """Start a chat in a terminal of so many columns and rows; default in the working directory.

    Args:
        folder: where the terminal's files are.
        plan: what the chat is made of.
        term: what the terminal says it is.
        size: its columns and rows.
        project: where the chat starts.
        delay: how many seconds each direction takes.
        environment: of the chat.
    """
    pipe = folder / "news"
    os.mkfifo(pipe)
    terminal = Pane(folder / "tmux", os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    values = {"TERM": term, "NO_COLOR": os.environ.get("NO_COLOR", ""), **environment}
    given = [
        part for name, value in values.items() for part in ("-e", f"{name}={value}")
    ]
    # The terminal itself says how large it is.
    command = ["env", "-u", "COLUMNS", "-u", "LINES", f"TERM={term}"]
    if delay:
        command += [sys.executable, str(_SLOW_LINE), str(delay)]
    command += [*PROGRAM, "chat", "--plan", str(plan)]
    terminal.call(
        "new-session",
        "-d",
        "-x",
        str(size[0]),
        "-y",
        str(size[1]),
        "-s",
        "chat",
        "-c",
        str(project or Path.cwd()),
        *given,
        *command,
    )
    terminal.call("pipe-pane", "-t", "chat", f"cat > {shlex.quote(str(pipe))}")
    try:
        terminal.until(lambda seen: "/help lists the commands" in seen and ">" in seen)
        yield terminal
    finally:
        terminal.call("kill-server")
        os.close(terminal.news)
