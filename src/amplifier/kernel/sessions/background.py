"""Work in a session's background: tasks of the session's own, which outlive the turn that began them.

A child that is made in such a task belongs to the session and not to a turn of it: no turn's cancellation and no
turn's deadline reach it. It draws on the budget of the turn that began the work, also once that has ended, so that
nothing is spent that the turn could not have spent itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from amplifier.kernel.budgets.ledger import TurnShare
from amplifier.kernel.reports import report
from amplifier.kernel.spans import current_span
from amplifier_sdk.errors import OwnerTaskError, SessionClosedError

if TYPE_CHECKING:
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = ["Background", "BackgroundWork", "work_of"]


@attrs.define(eq=False, repr=False)
class BackgroundWork:
    """One piece of work in the background of `session`; `share` is what it draws on, `is_done` says that it ended."""

    session: AmplifierSession
    share: TurnShare
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    _done: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def is_done(self) -> bool:
        """Whether it has ended, however that was."""
        return self._done.is_set()

    def cancel(self) -> None:
        """Cancel it; where it has ended this does nothing."""
        self._scope.cancel()

    async def wait(self) -> None:
        """Wait until it has ended, however that was."""
        await self._done.wait()

    async def run(self, function: Callable[[], Awaitable[object]], name: str) -> None:
        """Run a function as this work; what it raises is reported, since it must not end the session's tasks."""
        # no step of the turn that began it, whose end and deadlines are not its own
        current_span.set(None)
        _CURRENT.set(self)
        try:
            with self._scope:
                await function()
        except Exception as error:  # foreign code
            report(
                "background.failed",
                error,
                work=name,
                session_id=self.session.session_id,
            )
        finally:
            self._done.set()


_CURRENT: Final[ContextVar[BackgroundWork | None]] = ContextVar(
    "amplifier_background_work", default=None
)
"""The background work that the running code is a part of; what it starts inherits it."""


def work_of(session: AmplifierSession) -> BackgroundWork | None:
    """Return the work of a session's background that the running code is a part of, if it is."""
    work = _CURRENT.get()
    if work is not None and work.session is session:
        return work
    return None


@attrs.define(eq=False)
class Background:
    """The work in one session's background."""

    session: AmplifierSession
    _works: list[BackgroundWork] = attrs.field(factory=list)

    def start(
        self, function: Callable[[], Awaitable[object]], /, *, name: str
    ) -> BackgroundWork:
        """Run a function in a task of the session's own; see `amplifier_sdk.delegation.SessionBackground`."""
        session = self.session
        if session.is_closed:
            raise SessionClosedError(
                f"Session {session.session_id} was cleaned up; nothing more begins in its background"
            )
        group = session.coordinator.owners.task_group
        if group is None:
            raise OwnerTaskError(
                f"{name} works in the background: open the session with 'async with', or give it a task_group"
            )
        self._works = [work for work in self._works if not work.is_done]
        work = BackgroundWork(session, session.ledger.share())
        self._works.append(work)
        group.start_soon(work.run, function, name, name=name)
        return work

    async def cleanup(self) -> None:
        """Cancel all of it, and wait until it has ended, for `cleanup_timeout` at most."""
        for work in self._works:
            work.cancel()
        with anyio.move_on_after(self.session.plan.session.limits.cleanup_timeout):
            for work in self._works:
                await work.wait()
