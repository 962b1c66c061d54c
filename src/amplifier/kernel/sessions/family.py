"""A session's place in its family: the parent that it draws on and hears, and the children that it has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplifier.kernel.sessions.children import Children
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = ["Family"]


class Family:
    """A session's parent and children; `depth` counts the sessions above it, `depth_left` those it may have below."""

    __slots__ = ("_children", "_leave", "depth", "depth_left", "parent", "session")

    def __init__(self, session: AmplifierSession) -> None:
        self.session: AmplifierSession = session
        self.parent: AmplifierSession | None = None
        self.depth: int = 0
        self.depth_left: int = session.plan.session.limits.delegation_depth
        self._children: Children | None = None
        self._leave: Callable[[], None] | None = None

    @property
    def children(self) -> Children:
        """The session's children; made when the session first has one."""
        if self._children is None:
            from amplifier.kernel.sessions.children import Children  # few sessions have any

            self._children = Children(self.session)
        return self._children

    def join(self, parent: AmplifierSession) -> None:
        """Become a child: draw on the parent's budget, ask its person, hear its cancellation, end with it."""
        own, above = self.session.coordinator, parent.coordinator
        self.parent = parent
        self.depth = parent.family.depth + 1
        self.depth_left = min(self.depth_left, parent.family.depth_left - 1)
        self.session.ledger.above = parent.ledger
        own.decisions.ask_with(above.decisions)
        above.cancellation.register_child(own.cancellation)
        forget = above.cancellation.on_cancel(self._hear_cancel)

        def leave() -> None:
            forget()
            above.cancellation.unregister_child(own.cancellation)
            parent.family.children.release(self.session)

        self._leave = leave

    def leave(self) -> None:
        """Be no child any more, because the session ends; its budget is still the parent's."""
        if self._leave is not None:
            self._leave()

    def inherit_cancel(self) -> None:
        """Take over what the parent's running turn was asked, at the start of a turn."""
        if self.parent is not None and self.parent.is_busy:
            self.session.coordinator.cancellation.inherit(self.parent.coordinator.cancellation)

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

    async def _hear_cancel(self) -> None:
        """Tell what the parent's cancellation means for the running turn."""
        if self.session.is_busy:
            await self.session.coordinator.announce_cancel()
