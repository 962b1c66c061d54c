"""The hook registry: the dispatcher, and the host of the present turn, which loops find on it."""

from __future__ import annotations

from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier.kernel.turn.services import SessionServices
from amplifier.kernel.turn.turn import RunningTurn

__all__ = ["HookRegistry"]


class HookRegistry(HookDispatcher):
    """A session's hooks as modules and loops receive them; see `amplifier_sdk.contracts.Hooks`."""

    _turn: RunningTurn | None = None

    @property
    def host(self) -> RunningTurn:
        """The host that runs provider and tool calls: the turn that runs, else the last one.

        A registry without a session makes one of its own.
        """
        if self._turn is None:
            self._turn = RunningTurn(SessionServices(self))
        return self._turn

    @host.setter
    def host(self, turn: RunningTurn) -> None:
        self._turn = turn
