"""The child process of a validation: it runs a module's code, and writes down what the checks find."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Mapping

from amplifier.validation.journal import Journal
from amplifier.validation.supervision import Task
from amplifier_sdk.convert import from_json
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["main"]


def main(data: Mapping[str, JSONValue]) -> None:
    """Do one task and end the process, whatever threads the module left."""
    task = from_json(data, Task)
    descriptor = int(os.environ.pop("AMPLIFIER_VALIDATE_FD"))
    os.set_inheritable(descriptor, False)  # noqa: FBT003  # the function takes no other form
    faulthandler.enable(file=2)
    _end_with_parent()
    if task.location is not None:
        sys.path.insert(0, str(task.location.parent))
    with open(descriptor, "w", encoding="utf-8") as file:
        journal = Journal(file, task.timeout)
        if task.behaviors:
            from amplifier.validation.trying import try_behaviors  # each task loads what it needs

            try_behaviors(task, journal)
        else:
            from amplifier.validation.inspecting import inspect_module

            inspect_module(task, journal)
        journal.finish()
    sys.stdout.flush()
    os._exit(0)


def _end_with_parent() -> None:
    """Give the module an empty standard input, and end with every child process when the real one closes."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        while os.read(lifeline, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="amplifier validation", daemon=True).start()
