"""Owner tasks: a resource that holds a task group or a cancel scope lives in a task of its own.

anyio wants scopes left by the task that entered them, in strict order. So nothing of the session stays
open between two of its calls but these tasks; each opens its resource, waits for its `aclose`, and
closes it. They run in the group of `async with session`, or in one that the application gives.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel
import attrs
from anyio.abc import TaskGroup, TaskStatus

from amplifier_sdk.errors import OwnerTaskError

__all__ = ["Owner", "Owners"]

T = TypeVar("T")


@attrs.define(eq=False, repr=False)
class Owners:
    """The owner tasks of one session; `shielded` when the task group's end always cleans the session up first."""

    task_group: TaskGroup | None = None
    shielded: bool = False

    async def open(
        self, resource: AbstractAsyncContextManager[T], name: str
    ) -> tuple[T, Owner[T]]:
        """Open a resource in a task of its own; return its value and the task, which closes it on `aclose`.

        Raises:
            OwnerTaskError: the session has no task group.
        """
        if self.task_group is None:
            raise OwnerTaskError(
                f"{name} needs a task of its own: open the session with 'async with', or give it a task_group"
            )
        owner = Owner(resource, self.shielded)
        value: T = await self.task_group.start(owner.run, name=name)
        return value, owner


@attrs.define(eq=False, repr=False)
class Owner(Generic[T]):
    """One resource and the task that holds it open."""

    resource: AbstractAsyncContextManager[T]
    shielded: bool
    _failure: Exception | None = None
    _stop: anyio.Event = attrs.field(factory=anyio.Event)
    _closed: anyio.Event = attrs.field(factory=anyio.Event)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)

    async def run(self, *, task_status: TaskStatus[T]) -> None:
        """Hold the resource open until `aclose`; runs in the session's task group.

        In the session's own group the wait is shielded, so that under a cancelled session the resources
        still close in the order of the session's clean-up, which is what ends this wait. What the resource
        raises once it is open is for `aclose` to raise: it must not end the task group.
        """
        is_open = False
        try:
            with self._scope:
                async with self.resource as value:
                    task_status.started(value)
                    is_open = True
                    # Whoever opened it may be cancelled by now and has nothing to close it with.
                    await anyio.lowlevel.checkpoint_if_cancelled()
                    with anyio.CancelScope(shield=self.shielded):
                        await self._stop.wait()
        except Exception as error:  # foreign code
            if not is_open:
                raise
            self._failure = error
        finally:
            self._closed.set()

    async def aclose(self) -> None:
        """Close the resource in its own task and wait until it is closed.

        When this is cancelled, because the session's clean-up has a deadline, the closing is cancelled too.

        Raises:
            Exception: whatever the resource raised while it was open or as it closed.
        """
        self._stop.set()
        try:
            await self._closed.wait()
        finally:
            # of a task that is done this does nothing; else the closing took too long
            self._scope.cancel()
        if self._failure is not None:
            raise self._failure
