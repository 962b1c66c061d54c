"""The agents that a session may delegate to: those of its plan, and those that its modules contribute."""

from __future__ import annotations

from collections.abc import Mapping
from logging import getLogger
from typing import Final

import attrs

from amplifier_kit.open_data import as_object
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ToolError, did_you_mean

__all__ = ["AGENTS", "SELF", "Agents"]

AGENTS: Final = "agents"
"""The channel in which modules contribute agents: mappings of partial plans by name."""

SELF: Final = "self"
"""The agent that is the session itself."""

_SELF_DESCRIPTION: Final = "You yourself, with the same tools and an empty history."
_SHOWN_NAMES: Final = 20
_LONGEST_NAME: Final = 200

_log: Final = getLogger(__name__)


@attrs.define(eq=False)
class Agents:
    """The agents of one session; of two with one name that of the plan counts.

    `has_self` says whether the session itself is one. What modules contribute is known from `collect` on.
    """

    coordinator: Coordinator
    has_self: bool = True
    _contributed: Mapping[str, object] | None = None

    async def collect(self) -> None:
        """Ask the modules for their agents, the first time."""
        if self._contributed is not None:
            return
        contributed: dict[str, object] = {}
        for answer in await self.coordinator.collect_contributions(AGENTS):
            if isinstance(answer, Mapping):
                # Earlier contributions win, in the order in which modules were mounted.
                contributed = {
                    **{str(name): agent for name, agent in answer.items()},
                    **contributed,
                }
            else:
                _log.warning(
                    "A contribution to the channel 'agents' is no mapping and is left out: %.100r",
                    answer,
                )
        self._contributed = contributed

    @property
    def plans(self) -> dict[str, object]:
        """The partial plans by name, in the order of the names."""
        plans = self._named
        if self.has_self:
            plans.setdefault(SELF, {"description": _SELF_DESCRIPTION})
        return {name: plans[name] for name in sorted(plans)}

    def is_copy(self, name: str) -> bool:
        """Tell whether an agent is the session itself, and none of its plan or its modules."""
        # A plan may have an agent of its own by this name.
        return name == SELF and SELF not in self._named

    def find(self, name: str) -> str:
        """Return the name of an agent that there is.

        Raises:
            ToolError: there is none; names the nearest one, and how to find others.
        """
        plans = self.plans
        if name in plans:
            return name
        # A model may give a whole task as the name.
        asked = name[:_LONGEST_NAME]
        shown = ", ".join(list(plans)[:_SHOWN_NAMES]) or "none"
        rest = ""
        if len(plans) > _SHOWN_NAMES:
            rest = (
                f" and {len(plans) - _SHOWN_NAMES} more (action 'describe' finds them)"
            )
        hint = did_you_mean(asked, list(plans)) or "."
        raise ToolError(f"There is no agent {asked!r}{hint} Agents: {shown}{rest}")

    @property
    def _named(self) -> dict[str, object]:
        """The agents of the plan and of the modules; a file may have a number for a name."""
        named = as_object(self.coordinator.config.get(AGENTS))
        return {
            **(self._contributed or {}),
            **{str(name): plan for name, plan in named.items()},
        }
