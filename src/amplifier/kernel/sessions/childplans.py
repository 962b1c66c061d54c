"""The plan of a child session: the parent's, what of it is inherited, and the agent's laid over that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

import attrs

from amplifier.kernel.plans.overlays import keep_modules, merge_plans
from amplifier_sdk.delegation import ChildObserver, HookInheritance, ProviderPreference, ToolInheritance
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.hookspecs import ModuleKind
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.messages import MessageDict

__all__ = ["SELF", "SpawnRequest", "child_plan", "instruction_of"]

SELF = "self"
"""The agent that is the parent itself."""


@attrs.frozen(kw_only=True)
class SpawnRequest:
    """What was asked of `session.spawn`; see `amplifier_sdk.delegation.SpawnOptions`."""

    agent_name: str
    instruction: str
    parent_session: object = None
    agent_configs: Mapping[str, object] | None = None
    sub_session_id: str | None = None
    tool_inheritance: ToolInheritance | None = None
    hook_inheritance: HookInheritance | None = None
    orchestrator_config: Mapping[str, JSONValue] | None = None
    provider_preferences: Sequence[ProviderPreference] | None = None
    parent_messages: Sequence[MessageDict] | None = None
    self_delegation_depth: int | None = None
    session_metadata: Mapping[str, JSONValue] | None = None
    limits: LimitChanges | None = None
    observers: Mapping[str, ChildObserver] | None = None

    def agent(self, agents: Mapping[str, object]) -> Mapping[str, object]:
        """Return the agent's partial plan.

        Raises:
            ConfigError: there is no such agent, or it is no mapping.
        """
        known = agents if self.agent_configs is None else self.agent_configs
        if self.agent_name not in known:
            if self.agent_name == SELF:
                return {}
            hint = did_you_mean(self.agent_name, list(known)) or f"; known: {', '.join(known) or 'none'}"
            raise _problem(self.agent_name, f"no such agent{hint}")
        overlay = known[self.agent_name]
        if not isinstance(overlay, Mapping):
            raise _problem(self.agent_name, f"an agent is a partial mount plan; got {type(overlay).__name__}")
        return overlay


def child_plan(
    parent: Mapping[str, object], agent: Mapping[str, object], request: SpawnRequest, kinds: Sequence[ModuleKind]
) -> dict[str, object]:
    """Return the child's plan; nothing given is changed.

    Args:
        parent: the parent's plan.
        agent: the agent's partial plan. Its `agents` may be `"all"`, `"none"` or a list of the names that the
            child knows, besides a mapping.
        request: what else was asked.
        kinds: the module types of the session.
    """
    plan = merge_plans(parent, {}, kinds)
    if request.tool_inheritance is not None:
        keeps = _inherits(request.tool_inheritance, "inherit_tools", "exclude_tools")
        plan = keep_modules(plan, "tools", keeps)
    if request.hook_inheritance is not None:
        keeps = _inherits(request.hook_inheritance, "inherit_hooks", "exclude_hooks")
        plan = keep_modules(plan, "hooks", keeps)
    agents, choice = plan.get("agents"), agent.get("agents")
    if isinstance(agents, dict) and choice is not None and not isinstance(choice, Mapping):
        plan["agents"] = {name: agents[name] for name in _chosen(choice, agents, request.agent_name)}
        agent = {key: value for key, value in agent.items() if key != "agents"}
    plan = merge_plans(plan, agent, kinds)
    return merge_plans(plan, _extras(request), kinds)


def instruction_of(agent_name: str, agent: Mapping[str, object]) -> str | None:
    """Return an agent's system instruction.

    Raises:
        ConfigError: `system` is no mapping with a text `instruction`.
    """
    system = agent.get("system")
    if system is None:
        return None
    instruction = system.get("instruction") if isinstance(system, Mapping) else system
    if not isinstance(instruction, str):
        raise _problem(f"{agent_name}.system.instruction", f"a text; got {type(instruction).__name__}")
    return instruction


def _extras(request: SpawnRequest) -> dict[str, object]:
    """Write what was asked besides the agent as a partial plan."""
    extras: dict[str, object] = {}
    if request.orchestrator_config is not None:
        extras["orchestrator"] = {"config": request.orchestrator_config}
    if request.session_metadata is not None:
        extras["session"] = {"metadata": request.session_metadata}
    return extras


def _inherits(rule: Mapping[str, object], inherit: str, exclude: str) -> Callable[[str], bool]:
    """Return whether a module is inherited under a rule of ids, which may be globs."""
    unknown = [key for key in rule if key not in (inherit, exclude)]
    if unknown:
        hint = did_you_mean(unknown[0], (inherit, exclude)) or f"; known: {inherit}, {exclude}"
        raise ConfigError([Problem(unknown[0], f"unknown key{hint}")], subject="inheritance of a child")
    kept, dropped = _patterns(rule, inherit), _patterns(rule, exclude) or ()

    def keeps(module: str) -> bool:
        return (kept is None or _is_one_of(module, kept)) and not _is_one_of(module, dropped)

    return keeps


def _patterns(rule: Mapping[str, object], key: str) -> tuple[str, ...] | None:
    patterns = rule.get(key)
    if patterns is None:
        return None
    if not isinstance(patterns, (list, tuple, set, frozenset)):
        raise ConfigError(
            [Problem(key, f"a list of module ids; got {type(patterns).__name__}")], subject="inheritance of a child"
        )
    return tuple(map(str, patterns))


def _is_one_of(module: str, patterns: Sequence[str]) -> bool:
    """Whether a module is meant by one of several ids, which may leave out its type: `bash` is `tool-bash`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in (module, module.partition("-")[2]))


def _chosen(choice: object, agents: Mapping[str, object], agent_name: str) -> list[str]:
    """Return the names of the agents that a child may delegate to itself."""
    if choice in ("all", "none"):
        return list(agents) if choice == "all" else []
    if isinstance(choice, (list, tuple)):
        return [name for name in agents if name in choice]
    raise _problem(f"{agent_name}.agents", f"'all', 'none', a list of names or a mapping; got {choice!r:.100}")


def _problem(path: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"agents.{path}", message)], subject="mount plan")
