"""Signals while the event loop runs: Ctrl-C stops a turn, first gently; SIGTERM ends the command.

A signal that the parent process had ignored stays ignored, as a shell's background jobs expect.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import attrs
import click
from anyio.abc import TaskGroup, TaskStatus

from amplifier.cli._exits import SignalledError
from amplifier.cli._terminal import notice

if TYPE_CHECKING:
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = ["Interrupts", "run_interruptible"]

T = TypeVar("T")

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_interruptible(program: Callable[[Interrupts], Awaitable[T]], backend: str) -> T:
    """Run a program in an event loop until it ends or a signal ends it.

    Raises:
        click.ClickException: the backend is not installed.
        SignalledError: a signal ended it.
    """
    if find_spec(backend) is None:
        # wrong usage alone names it
        from amplifier_kit.installation import install_command

        raise click.ClickException(
            f"--backend {backend} needs a package: {install_command(f'amplifier[{backend}]')}"
        )
    return anyio.run(_beside_signals, program, backend=backend)


async def _beside_signals(program: Callable[[Interrupts], Awaitable[T]]) -> T:
    results: list[T] = []
    failures: list[Exception] = []
    async with anyio.create_task_group() as group:
        interrupts = Interrupts(group)
        # Started before the program: a signal in between would end the process without
        # its clean-up.
        await group.start(interrupts.listen)
        with interrupts.scope:
            try:
                results.append(await program(interrupts))
            except Exception as error:
                failures.append(error)  # raised below: the task group would wrap it
        group.cancel_scope.cancel()
    for failure in failures:
        raise failure
    for result in results:
        return result
    # Neither a result nor a failure: the scope was cancelled by a signal.
    raise SignalledError(interrupts.received or signal.SIGINT)


@attrs.define(eq=False)
class Interrupts:
    """What signals do to the program, and to the turn that it runs.

    Where nothing was said to `turn`, Ctrl-C calls `at_prompt`, if there is one, instead of ending the program.
    """

    group: TaskGroup
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    received: int | None = None
    at_prompt: Callable[[], None] | None = None
    _session: AmplifierSession | None = None
    _presses: int = 0

    @contextmanager
    def turn(self, session: AmplifierSession) -> Iterator[None]:
        """Let Ctrl-C stop this session's turn, instead of the program, inside the block."""
        self._session, self._presses = session, 0
        try:
            yield
        finally:
            self._session = None

    async def listen(self, *, task_status: TaskStatus[None]) -> None:
        """Receive signals until cancelled."""
        heard = [
            number
            for number in SIGNALS
            # `nohup` and background jobs rely on signals that stay ignored.
            if signal.getsignal(number) is not signal.SIG_IGN
        ]
        with anyio.open_signal_receiver(*heard) as received:
            task_status.started()
            async for number in received:
                self.handle(number)

    def handle(self, number: int) -> None:
        """Do what a signal means now, also one that came as a key."""
        if (
            number == signal.SIGINT
            and self._session is None
            and self.at_prompt is not None
        ):
            self.at_prompt()
            return
        if number != signal.SIGINT or self._session is None:
            self.received = number
            self.scope.cancel()
            return
        self._presses += 1
        if self._presses == 1:
            notice("\nStopping after this step. Ctrl-C again stops at once.")
        # In a task of its own: handlers hear of it, and the next press must not wait for them.
        self.group.start_soon(
            partial(self._session.cancel, immediate=self._presses > 1)
        )
