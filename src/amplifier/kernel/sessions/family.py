"""A session's place in its family: the parent that it draws on and hears, and the children that it has.

A cancel means all work that has begun below the session: turns that run, whether or not a turn of its parent does,
children that are being opened for one, and whatever tasks of a cancelled turn begin later. A session that is idle
hears nothing of it, and its next turn is new work. A child of the session's background is no such work: it is
cancelled itself, or with the session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from amplifier.kernel.sessions.background import work_of
from amplifier.kernel.spans import is_of_cancelled_turn
from amplifier.kernel.suspension import Suspension

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplifier.kernel.sessions.background import BackgroundWork
    from amplifier.kernel.sessions.children import Children
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = ["Family"]


class Family:
    """A session's parent and children; `depth` counts the sessions above it, `depth_left` those it may have below.

    `runs_once` says that the session was made for one turn, and is at work from then on, `is_detached` that it was made
    in its parent's background.
    """

    __slots__ = (
        "_children",
        "_leave",
        "depth",
        "depth_left",
        "is_detached",
        "parent",
        "runs_once",
        "session",
    )

    def __init__(self, session: AmplifierSession) -> None:
        self.session: AmplifierSession = session
        self.parent: AmplifierSession | None = None
        self.runs_once: bool = False
        self.is_detached: bool = False
        self.depth: int = 0
        self.depth_left: int = session.plan.session.limits.delegation_depth
        self._children: Children | None = None
        self._leave: Callable[[], None] | None = None

    @property
    def children(self) -> Children:
        """The session's children; made when the session first has one."""
        if self._children is None:
            # few sessions have any
            from amplifier.kernel.sessions.children import Children

            self._children = Children(self.session)
        return self._children

    def join(self, parent: AmplifierSession) -> None:
        """Become a child: draw on the parent's budget, ask its person, hear its cancellation, end with it."""
        own, above = self.session.coordinator, parent.coordinator
        self.parent = parent
        self.depth = parent.family.depth + 1
        # the plan of a child may forbid more levels, but never allow more
        self.depth_left = min(self.depth_left, parent.family.depth_left - 1)
        self.session.ledger.parent = parent.ledger
        own.decisions.ask_with(above.decisions)
        leave = ExitStack()
        leave.callback(parent.family.children.release, self.session)
        leave.callback(own.inherit(above))
        work = work_of(parent)
        if work is None:
            token = above.cancellation
            token.register_child(own.cancellation)
            leave.callback(token.unregister_child, own.cancellation)
            leave.callback(token.on_cancel(self.hear_cancel))
        else:
            self._detach(work)
        self._leave = leave.close

    def _detach(self, work: BackgroundWork) -> None:
        """Be no part of the parent's turns: draw on what the work has, and be suspended with none of them."""
        self.is_detached = True
        self.session.ledger.drawn = work.share
        self.session.coordinator.decisions.suspension = Suspension()

    def leave(self) -> None:
        """Be no child any more, because the session ends; its budget is still the parent's."""
        if self._leave is not None:
            self._leave()

    def begin_turn(self) -> None:
        """Forget an earlier request to stop, and take over what the turns were asked that the new one is a part of."""
        token = self.session.coordinator.cancellation
        # a child made for one turn may be cancelled before that turn begins
        if token.is_cancelled and not self.runs_once:
            self.session.coordinator.hooks.reserve()
            token.reset()
        if self.parent is None:
            return
        for ancestor in self._ancestors():
            if ancestor.is_busy:
                token.inherit(ancestor.coordinator.cancellation)
        # a task that outlived its turn must not continue that turn's work in a child
        if is_of_cancelled_turn():
            token.request_graceful()

    async def cancel(self, *, immediate: bool) -> None:
        """Cancel what runs below a session that runs no turn itself."""
        self.request_children(immediate)
        await self._announce_below()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until the parent may have one more child at work."""
        assert self.parent is not None
        async with self.parent.family.children.slot(self.session):
            yield

    async def cleanup(self) -> None:
        """Clean up the children that are open."""
        if self._children is not None:
            await self._children.cleanup()

    def request_children(self, immediate: bool) -> None:
        """Ask the turns of all children to stop before that is announced: what hears the first may take its time."""
        for child in self._attached:
            if not (child.is_busy or child.family.runs_once):
                child.family.request_children(immediate)
            elif immediate:
                child.coordinator.cancellation.request_immediate()
            else:
                child.coordinator.cancellation.request_graceful()

    async def _announce_below(self) -> None:
        for child in self._attached:
            await child.family.hear_cancel()

    async def hear_cancel(self) -> None:
        """Announce what an ancestor's cancellation means for the running turn, or for those of the children."""
        if self.session.is_busy:
            await self.session.coordinator.announce_cancel()
        else:
            await self._announce_below()

    @property
    def open_children(self) -> tuple[AmplifierSession, ...]:
        """The children that are open, in the order in which they were made."""
        if self._children is None:
            return ()
        return self._children.open

    @property
    def _attached(self) -> tuple[AmplifierSession, ...]:
        """The open children that are no part of the background."""
        return tuple(
            child for child in self.open_children if not child.family.is_detached
        )

    def _ancestors(self) -> Iterator[AmplifierSession]:
        """Yield the sessions above whose turns the session's own are parts of, the nearest first."""
        family = self
        while family.parent is not None and not family.is_detached:
            yield family.parent
            family = family.parent.family
