"""The mode of a session: how much it may do without a question, for every application that shows one."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

import attrs

from amplifier.app.commands.modes import PlanMode
from amplifier_sdk.assessments import ACCEPTED, EDITS
from amplifier_sdk.contracts import Coordinator

__all__ = ["MODES", "ModeName", "SessionModes"]

ModeName: TypeAlias = Literal["ask", "accept-edits", "plan"]
"""The modes, in the order in which a person goes through them."""

MODES: Final[tuple[ModeName, ...]] = get_args(ModeName)
"""All of them."""


@attrs.define(eq=False)
class SessionModes:
    """The modes of one session.

    `ask` leaves every question to the session's guards, `accept-edits` accepts edits of files without one, and
    `plan` refuses whatever does more than read.

    Args:
        coordinator: the session's.
        plan: its plan mode, which commands may turn on and off as well.
    """

    coordinator: Coordinator
    plan: PlanMode

    @property
    def current(self) -> ModeName:
        """The mode that is in force."""
        # Never stored: a command, a flag of the start and an editor change the same state.
        if self.plan.is_on:
            return "plan"
        if EDITS in self._accepted:
            return "accept-edits"
        return "ask"

    @property
    def following(self) -> ModeName:
        """The mode that comes after the current one."""
        return MODES[(MODES.index(self.current) + 1) % len(MODES)]

    def choose(self, mode: ModeName) -> None:
        """Put a mode in force, from the next tool call on."""
        accepted = self._accepted - {EDITS}
        if mode == "accept-edits":
            accepted |= {EDITS}
        self.coordinator.register_capability(ACCEPTED, accepted)
        self.plan.turn(on=mode == "plan")

    @property
    def _accepted(self) -> frozenset[str]:
        accepted = self.coordinator.get_capability(ACCEPTED)
        if isinstance(accepted, frozenset):
            return accepted
        return frozenset()
