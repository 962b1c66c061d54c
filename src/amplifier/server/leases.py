"""A session's lease: held in a block, and let go of whatever happens to whoever has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier.server.retries import UNAVAILABLE, problem_of
from amplifier_sdk.stores import Lease, SessionStore

__all__ = ["release_lease", "renew_lease", "renewed"]

_RELEASING: Final = 10.0


@asynccontextmanager
async def renewed(store: SessionStore, lease: Lease) -> AsyncIterator[None]:
    """Keep a lease for a block.

    Raises:
        LeaseLostError: it ended all the same, and so does the block.
    """
    async with open_group() as group:
        group.start_soon(renew_lease, store, lease)
        yield
        group.cancel_scope.cancel()


async def renew_lease(store: SessionStore, lease: Lease) -> None:
    """Keep a lease until cancelled.

    Raises:
        LeaseLostError: it ended all the same.
    """
    while True:
        await anyio.sleep(lease.period / 3)
        try:
            await store.renew(lease)
        except UNAVAILABLE as error:
            # the store may answer again before the lease ends
            problem, session_id = problem_of(error), lease.session_id
            report("store.lease_not_renewed", problem=problem, session=session_id)


async def release_lease(store: SessionStore, lease: Lease) -> None:
    """End a lease also where the caller is cancelled: nobody would have the session until its time is over.

    Raises:
        StoreError: the store does not answer.
    """
    with anyio.CancelScope(shield=True), anyio.move_on_after(_RELEASING):
        await store.release(lease)
