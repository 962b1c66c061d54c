"""The module's configuration: what an agent inherits, how far it may go, how much is said of it."""

from __future__ import annotations

from typing import cast

import attrs

from amplifier_sdk.bounds import amount, count
from amplifier_sdk.limits import LimitChanges, Limits

__all__ = ["AgentLimits", "TaskConfig"]


@attrs.frozen(kw_only=True)
class AgentLimits:
    """Upper limits of each turn of an agent, as in the plan's `session.limits`; stricter ones of its own stay.

    Args:
        iterations: calls of a model.
        tool_calls: tool calls that run.
        tokens: tokens in all.
        cost_usd: US dollars, as a number or its text.
        wall_time: seconds.
    """

    iterations: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | str | None = None
    wall_time: float | None = None

    def __attrs_post_init__(self) -> None:
        Limits(**self.given)  # what a limit may be is stated there

    @property
    def given(self) -> LimitChanges:
        """The limits that are set."""
        given = {
            name: value
            for name, value in attrs.asdict(self).items()
            if value is not None
        }
        return cast("LimitChanges", given)  # its keys are these fields


@attrs.frozen(kw_only=True)
class TaskConfig:
    """What `config` of the plan may hold.

    Args:
        inherit_tools: the only tool modules that an agent gets from its parent, as ids or globs; `None` is all.
        exclude_tools: tool modules that it does not get. What the agent itself names it always gets.
        inherit_hooks: the only hook modules that it gets, besides those that guard; `None` is all.
        exclude_hooks: hook modules that it does not get. One that guards the session it always gets.
        max_recursion_depth: how many generations of agents there may be below a session; `None` leaves it to the
            session's `delegation_depth`, which is never passed.
        limits: upper limits of each turn of an agent.
        max_background: how many agents work in the background at once, where the application has one; 0 is none.
        self_delegation: whether the agent `self`, a copy of the session itself, is offered.
        provider_preferences: whether a model may choose an agent's provider and model.
        max_answer_chars: characters of an agent's answer that a result holds; of a longer one the head and the tail.
        max_context_chars: characters of the parent's conversation that an agent inherits at most.
        max_message_chars: characters of one inherited message or result.
        catalogue_chars: characters that the list of agents takes in each request.
    """

    inherit_tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] | None = None
    inherit_hooks: tuple[str, ...] | None = None
    exclude_hooks: tuple[str, ...] | None = None
    max_recursion_depth: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(amount)
    )
    limits: AgentLimits = AgentLimits()
    max_background: int = attrs.field(default=4, validator=amount)
    self_delegation: bool = True
    provider_preferences: bool = True
    max_answer_chars: int = attrs.field(default=20_000, validator=count)
    max_context_chars: int = attrs.field(default=40_000, validator=count)
    max_message_chars: int = attrs.field(default=2_000, validator=count)
    catalogue_chars: int = attrs.field(default=2_000, validator=count)
