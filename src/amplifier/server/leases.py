"""Letting go of a session's lease, whatever happens to whoever has it."""

from __future__ import annotations

from typing import Final

import anyio

from amplifier_sdk.stores import Lease, SessionStore

__all__ = ["release_lease"]

_RELEASING: Final = 10.0


async def release_lease(store: SessionStore, lease: Lease) -> None:
    """End a lease also where the caller is cancelled: nobody would have the session until its time is over.

    Raises:
        StoreError: the store does not answer.
    """
    with anyio.CancelScope(shield=True), anyio.move_on_after(_RELEASING):
        await store.release(lease)
