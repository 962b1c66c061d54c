"""Whether a server can do what callers want of it: its store takes what is written, and its folder is there."""

from __future__ import annotations

import os
from math import inf
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.server.activity import ActivityLog
from amplifier.server.stores import ServerStores
from amplifier_sdk.errors import StoreError, StoreUnavailableError

__all__ = ["Readiness"]

_FRESH: Final = 1.0
_TIMEOUT: Final = 5.0


@attrs.define(eq=False)
class Readiness:
    """Checks the server for whoever sends it callers; anybody may ask, and the store is asked once a second.

    Args:
        stores: the server's.
        activity: what it writes in.
    """

    stores: ServerStores
    activity: ActivityLog
    _problem: str | None = None
    _checked_at: float = -inf
    _checking: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def check(self) -> None:
        """Return where the server is ready; all who ask during a check get its outcome.

        Raises:
            StoreUnavailableError: the store takes nothing at the moment, or the served folder is gone.
        """
        asked = anyio.current_time()
        async with self._checking:
            if asked - self._checked_at >= _FRESH:
                self._problem = await self._found()
                self._checked_at = anyio.current_time()
            problem = self._problem
        if problem is not None:
            raise StoreUnavailableError(problem)

    async def _found(self) -> str | None:
        """Check everything, and say what is wrong."""
        try:
            with anyio.fail_after(_TIMEOUT):
                await self.activity.check()
                await to_thread.run_sync(self._check_folder)
        except TimeoutError:
            return f"The store has not answered for {_TIMEOUT:g} seconds"
        except (StoreError, OSError) as error:
            return str(error)
        return None

    def _check_folder(self) -> None:
        folder = self.stores.dirs.working_dir
        # sessions write there; a folder that is gone is no place for a turn
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"Nothing can be written in {str(folder)!r}")
