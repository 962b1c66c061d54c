"""What an agent's child session is made of: what `session.spawn` is asked for, and the limits of delegation.

The limits stand in the child's own plan, so they hold for each of its turns, also when it is resumed, and the child
knows from its plan how much further it may delegate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final, cast

import attrs
from anyio import to_thread

from amplifier_kit.open_data import as_object
from amplifier_module_tool_task.agents import SELF, Agents
from amplifier_module_tool_task.config import TaskConfig
from amplifier_module_tool_task.requests import Request
from amplifier_sdk.contracts import ContextManager, Coordinator
from amplifier_sdk.delegation import HookInheritance, SpawnOptions, ToolInheritance
from amplifier_sdk.limits import LimitChanges, Limits
from amplifier_sdk.messages import MessageDict

__all__ = ["Maker", "bounded"]

_DEFAULTS = Limits()

SELF_DEPTH: Final = "self_delegation_depth"
"""The capability that says how often a session stands below itself."""


@attrs.frozen(eq=False)
class Maker:
    """Puts together what the children of one session are made of."""

    config: TaskConfig
    coordinator: Coordinator
    agents: Agents

    async def options(
        self, request: Request, agent: str, tool: str, depth_left: int
    ) -> SpawnOptions:
        """Return what to ask `session.spawn` for; what is not wanted is left out.

        Args:
            request: what the model asks.
            agent: the agent's name.
            tool: the name by which the model called.
            depth_left: how many generations there may be below the child.
        """
        plans = self.agents.plans
        # In the child's plan, so that the limits hold in its own sessions and after a
        # resume.
        plans[agent] = bounded(
            plans[agent], self.coordinator.config, self.config.limits.given, depth_left
        )
        options: SpawnOptions = {
            "agent_name": agent,
            "instruction": request.instruction,
            "agent_configs": plans,
        }
        # no part of the contract, so that a coordinator may lack it
        if (session := getattr(self.coordinator, "session", None)) is not None:
            options["parent_session"] = session
        tools, hooks = self._rules()
        if tools is not None:
            options["tool_inheritance"] = tools
        if hooks is not None:
            options["hook_inheritance"] = hooks
        if request.preferences:
            options["provider_preferences"] = request.preferences
        if request.role is not None:
            options["orchestrator_config"] = {"role": request.role}
        if messages := await self._messages(request, agent, tool):
            options["parent_messages"] = messages
        # copies of copies are counted apart from the depth of delegation
        if agent == SELF:
            depth = self.coordinator.get_capability(SELF_DEPTH)
            options["self_delegation_depth"] = (
                depth if isinstance(depth, int) else 0
            ) + 1
        return options

    def resume_options(self, depth_left: int) -> Mapping[str, object]:
        """Return what `session.resume` is to make the child of: the agents and the rules as they are by now.

        Args:
            depth_left: how many generations there may be below the child.
        """
        limits = self.config.limits.given
        # a copy of the session has no plan of its own, but limits nevertheless
        plans = {SELF: {}, **self.agents.plans}
        tools, hooks = self._rules()
        return {
            "agent_configs": {
                name: bounded(plan, self.coordinator.config, limits, depth_left)
                for name, plan in plans.items()
            },
            "tool_inheritance": tools,
            "hook_inheritance": hooks,
        }

    def _rules(self) -> tuple[ToolInheritance | None, HookInheritance | None]:
        """Return the rules of inheritance; `session.spawn` knows their keys by the names of the configuration."""
        tools = self._set("inherit_tools", "exclude_tools")
        hooks = self._set("inherit_hooks", "exclude_hooks")
        return cast("ToolInheritance", tools) if tools else None, cast(
            "HookInheritance", hooks
        ) if hooks else None

    def _set(self, *keys: str) -> dict[str, object]:
        """Return those keys of the configuration that are set."""
        values = {key: getattr(self.config, key) for key in keys}
        return {key: value for key, value in values.items() if value is not None}

    async def _messages(
        self, request: Request, agent: str, tool: str
    ) -> Sequence[MessageDict]:
        """Return what the child's history begins with; a copy of the session has its system message as well."""
        context, is_copy = self.coordinator.get("context"), self.agents.is_copy(agent)
        if not isinstance(context, ContextManager) or (
            request.depth == "none" and not is_copy
        ):
            return []
        # most agents begin with nothing
        from amplifier_module_tool_task.forms import Form
        from amplifier_module_tool_task.inheritance import inherited, system_message

        messages = await context.get_messages()
        first = []
        if is_copy:
            first = system_message(messages)
        if request.depth == "none":
            return first
        form = Form(scope=request.scope, tool=tool, limit=self.config.max_message_chars)
        turns = None
        if request.depth == "recent":
            turns = request.turns
        choose = partial(
            inherited, messages, form, turns=turns, limit=self.config.max_context_chars
        )
        # A long history takes its time; whoever cancels need not wait for it.
        return [*first, *await to_thread.run_sync(choose, abandon_on_cancel=True)]


def bounded(
    agent: object, parent: Mapping[str, object], limits: LimitChanges, depth_left: int
) -> object:
    """Return an agent's partial plan with stricter limits where its own are looser; nothing given is changed.

    Args:
        agent: the partial plan; one that is no mapping, or has no mapping of limits, is the kernel's to refuse.
        parent: the plan of the session that delegates, whose limits the agent has where it names none.
        limits: the upper limits of a turn.
        depth_left: how many generations there may be below the child.
    """
    session = as_object(agent).get("session")
    own = as_object(session).get("limits")
    if not isinstance(agent, Mapping) or not isinstance(session, (Mapping, type(None))):
        return agent
    if not isinstance(own, (Mapping, type(None))):
        return agent
    wanted: dict[str, object] = {**limits, "delegation_depth": depth_left}
    above = as_object(as_object(parent.get("session")).get("limits"))
    # The agent's own limits win over its parent's, and these over the defaults: what
    # holds now is compared.
    has = {
        **{name: getattr(_DEFAULTS, name) for name in wanted},
        **above,
        **(own or {}),
    }
    stricter = {
        name: value for name, value in wanted.items() if _is_less(value, has.get(name))
    }
    if not stricter:
        return agent
    return {
        **agent,
        "session": {**(session or {}), "limits": {**(own or {}), **stricter}},
    }


def _is_less(value: object, than: object) -> bool:
    """Tell whether a limit is stricter than another, of which `None` is none; what is no number is not compared."""
    if than is None:
        return True
    try:
        # Costs may be given as text, to the cent.
        return Decimal(str(value)) < Decimal(str(than))
    except InvalidOperation:
        return False
