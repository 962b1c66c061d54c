"""The modes of a session: how much it may do without a question, and plan mode, in which it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

import attrs

from amplifier_sdk.assessments import ACCEPTED, EDITS
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.effects import EFFECTS, ONLY_READS, effects_of
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_PRE, PromptSubmit, ToolPre
from amplifier_sdk.results import HookResult

__all__ = ["MODES", "ModeName", "PlanMode", "SessionModes"]

_NAME: Final = "plan-mode"
# Before hooks that ask the person: what plan mode refuses is not worth a question.
_FIRST: Final = -1000
_INSTRUCTION: Final = (
    "Plan mode is on. Find out what you need to know and write a plan. Use only tools that read; tools that write, run"
    " programs or use the network are refused until the person turns plan mode off."
)

ModeName: TypeAlias = Literal["ask", "accept-edits", "plan"]
"""The modes, in the order in which a person goes through them."""

MODES: Final[tuple[ModeName, ...]] = get_args(ModeName)
"""All of them."""


@attrs.define(eq=False)
class PlanMode:
    """Refuses the tools of a session that do anything but read, by what they say of their effects.

    A tool that does not say what it does is refused as well. While the mode is off nothing is registered.

    Args:
        coordinator: the session's.
    """

    coordinator: Coordinator
    _registered: list[Callable[[], None]] = attrs.field(factory=list, init=False)

    @property
    def is_on(self) -> bool:
        """Whether it is on."""
        return bool(self._registered)

    def turn(self, on: bool) -> None:
        """Turn it on or off; it holds from the next tool call on."""
        if on and not self._registered:
            hooks = self.coordinator.hooks
            self._registered = [
                hooks.register(TOOL_PRE, self._evaluate, _FIRST, _NAME, decides=True),
                hooks.register(
                    PROMPT_SUBMIT, self._instruct, _FIRST, _NAME, decides=True
                ),
            ]
        elif not on:
            for unregister in self._registered:
                unregister()
            self._registered = []

    def refusal(self, name: str) -> str | None:
        """Say why a tool is refused while the mode is on; `None` where it only reads."""
        tool, effects = self.coordinator.get("tools", name), None
        if tool is not None:
            effects = effects_of(tool, name=name)
        if effects is None:
            return "it does not say what it does"
        more = effects - ONLY_READS
        if not more:
            return None
        return f"its effects are {', '.join(effect for effect in EFFECTS if effect in more)}"

    async def _evaluate(self, _: str, data: ToolPre) -> HookResult | None:
        why = self.refusal(data["tool_name"])
        if why is None:
            return None
        return HookResult.deny(
            f"Plan mode is on, and {data['tool_name']!r} may not run in it: {why}. Only tools that read may be used."
            " Do not try again: finish your plan and present it to the person, who can turn plan mode off."
        )

    async def _instruct(self, _: str, data: PromptSubmit) -> HookResult | None:  # noqa: ARG002  # a handler's signature
        # Ephemeral, since the history would still say so after the mode is turned off.
        return HookResult.inject(_INSTRUCTION, ephemeral=True)


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
