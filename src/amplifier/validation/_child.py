"""The child process of a validation: it runs a module's code, and writes down what the checks find."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading

from amplifier.validation.journal import FindingsJournal
from amplifier.validation.supervision import ChildTask
from amplifier_sdk.convert import from_json

__all__ = ["main"]


def main() -> None:
    """Do the task of a line of standard input and end the process, whatever threads the module left."""
    task = from_json(json.loads(_line()), ChildTask)
    # taken out of the environment, and not handed on: the module's own processes must
    # neither find the file nor keep it open
    descriptor = int(os.environ.pop("AMPLIFIER_VALIDATE_FD"))
    os.set_inheritable(descriptor, False)  # noqa: FBT003  # the function takes no other form
    # a crash in C code shows on standard error where the module was
    faulthandler.enable(file=2)
    _end_with_parent()
    # in front, so that the package itself is checked and no installed one of its name
    if task.location is not None:
        sys.path.insert(0, str(task.location.parent))
    with open(descriptor, "w", encoding="utf-8") as file:
        journal = FindingsJournal(file, task.timeout)
        if task.behaviors:
            # each task loads what it needs
            from amplifier.validation.behavior_runs import try_behaviors

            try_behaviors(task, journal)
        else:
            from amplifier.validation.inspection import inspect_module

            inspect_module(task, journal)
        journal.finish()
    # No clean-up of the interpreter: it would wait for threads that the module left.
    sys.stdout.flush()
    os._exit(0)


def _line() -> bytes:
    """Read a line of standard input byte by byte; nothing behind it is taken."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        # a buffered reader would take more, and the lifeline below is this descriptor
        return stdin.readline()


def _end_with_parent() -> None:
    """Give the module an empty standard input, and end with every child process when the real one closes."""
    # Whoever asked holds the other end, and the system closes it even when that process
    # is killed.
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        while os.read(lifeline, 1):
            pass
        # the whole group: the module may have started processes of its own
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="amplifier validation", daemon=True).start()
