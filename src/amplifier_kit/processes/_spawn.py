"""Starting a program, restricted where that is wanted; of the standard library alone: the keeper has nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

__all__ = ["Action", "spawn"]

Action: TypeAlias = tuple[int, ...] | tuple[int, int, str, int, int]
"""What `os.posix_spawn` does with a handle before the program begins."""

# Python ignores these, and a program that it starts would inherit that.
_DEFAULT_SIGNALS: Final = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGQUIT,
)


def spawn(
    argv: list[str],
    environment: dict[str, str],
    actions: Sequence[Action],
    restrictions: object = None,
) -> int:
    """Start a program in a session of its own and return its id.

    Args:
        argv: the program, searched in `PATH` of the environment where it has no slash, and its arguments.
        environment: all of its environment.
        actions: what is done with handles before it begins.
        restrictions: what it may not do, as `confined` writes it; nothing where there are none.

    Raises:
        OSError: there is no such program, it cannot be started, or the kernel refuses the restrictions.
    """
    program = _found(argv[0], environment.get("PATH", os.defpath))

    def start() -> int:
        return os.posix_spawn(
            program,
            argv,
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )

    if restrictions:
        return _in_restricted_thread(restrictions, start)
    return start()


def _in_restricted_thread(restrictions: object, start: Callable[[], int]) -> int:
    """Start the program from a thread that is restricted: the keeper stays outside, where it cannot be signalled."""
    from threading import Thread  # few commands need these two

    from amplifier_kit.processes._restrictions import restrict

    ended: list[int | Exception] = []

    def work() -> None:
        try:
            restrict(restrictions)
            ended.append(start())
        except Exception as error:  # raised again outside of the thread
            ended.append(error)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(ended[0], Exception):
        raise ended[0]
    return ended[0]


def _found(name: str, path: str) -> str:
    """Find a program in a search path."""
    for folder in [""] if "/" in name else path.split(":"):
        candidate = os.path.join(folder, name)
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(2, f"there is no program {name!r}")
