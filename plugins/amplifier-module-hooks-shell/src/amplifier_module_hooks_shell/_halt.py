"""Stopping an agent altogether: the running turn asks no model any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from amplifier_module_hooks_shell._surroundings import NAME
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.events import PROVIDER_REQUEST, ProviderRequest
from amplifier_sdk.results import HookResult

__all__ = ["Halt"]

_EARLY: Final = -100


@attrs.define(eq=False)
class Halt:
    """Denies the next request of a turn, and none of a later one."""

    _hooks: Hooks
    _end: Callable[[], None] | None = None

    def set(self, reason: str, turn: object) -> None:
        """Deny the next request of a turn.

        Args:
            reason: why, for whoever ran the turn.
            turn: the turn's id.
        """
        self.clear()

        def refuse(_: str, request: ProviderRequest) -> HookResult | None:
            self.clear()
            if request.get("turn_id") == turn:
                return HookResult.deny(reason)
            return None

        self._end = self._hooks.register(
            PROVIDER_REQUEST, refuse, _EARLY, NAME, decides=True
        )

    def clear(self) -> None:
        """Let requests go on."""
        if self._end is not None:
            self._end()
            self._end = None
