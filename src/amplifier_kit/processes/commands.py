"""What is run, what confines it, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["REPORT_HANDLE", "Command", "CommandEnd", "Confinement"]

REPORT_HANDLE: Final = 60
"""The number of the handle on which a command may write the folder that it ended in."""


@attrs.frozen(kw_only=True)
class Command:
    """A program with its arguments, run without a shell.

    Args:
        argv: the program and its arguments; a program without a slash is searched in `PATH` of `environment`.
        directory: the absolute path of the folder it starts in.
        environment: all of its environment; nothing is inherited.
        grace: seconds between the signal to end and the one that kills.
        log: the path of a log that takes its output instead of the pipes, without its suffix; see `JobLog`.
        max_log_bytes: how much of its latest output the log holds at least; twice as much at most.
        restrictions: what Landlock and seccomp are to refuse, as `confined` writes it.
        input: the text on its standard input, in a file without a name; it may be read as slowly as the command likes.
        interactive: whether its standard input is a pipe, which `ProcessTree.send` writes to.
    """

    argv: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    grace: float = 0.3
    log: str | None = None
    max_log_bytes: int = 1 << 20
    restrictions: Mapping[str, JSONValue] | None = None
    input: str = ""
    interactive: bool = False


@attrs.frozen(kw_only=True)
class Confinement:
    """What confines a command; all paths are absolute.

    Args:
        writable: folders in which it may write.
        protected: paths below those that stay as they are, also when they do not exist yet.
        hidden: files and folders that it may not read.
        shown: folders in hidden ones that it may read all the same.
        scratch: a folder of its own that takes the place of `/tmp`, where the mechanism can.
        network: whether it may reach the network.
    """

    writable: tuple[str, ...]
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    scratch: str | None = None
    network: bool = False


@attrs.frozen(kw_only=True)
class CommandEnd:
    """How a command ended.

    Args:
        code: its exit code; 128 and the signal's number when a signal ended it, 127 when it could not be started.
        error: why it could not be started.
        directory: the folder it ended in, when it wrote that on `REPORT_HANDLE`.
        leftover: how many processes it left running; they are dead.
        survivors: how many of them could not be killed.
        timed_out: whether its time was up.
    """

    code: int
    error: str | None = None
    directory: str | None = None
    leftover: int = 0
    survivors: int = 0
    timed_out: bool = False
