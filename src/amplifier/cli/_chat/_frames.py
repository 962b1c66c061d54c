"""How often the screen is drawn while an answer streams: a person sees no more, and typing stays quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import attrs

__all__ = ["Frames"]

_SECONDS: Final = 0.04


@attrs.define(eq=False)
class Frames:
    """Draws what was asked for, at most once each 40 ms; `run` does it until it is cancelled.

    Args:
        draw: draws the screen as it is by now.
    """

    draw: Callable[[], None]
    _wanted: anyio.Event = attrs.field(factory=anyio.Event)

    def ask(self) -> None:
        """Ask for a drawing; several requests before it are one."""
        self._wanted.set()

    async def run(self) -> None:
        """Draw whenever it is asked for."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            self.draw()
            await anyio.sleep(_SECONDS)
