"""The plan of a child session: the parent's, what of it is inherited, and the agent's laid over that.

It is made anew from the parent's present plan each time that the child is opened, so that a child that is resumed is
guarded as one that begins now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Self, Unpack, cast

import attrs

from amplifier.kernel.plans.overlays import (
    gathered,
    keep_modules,
    merge_plans,
    replace_modules,
)
from amplifier.kernel.sessions.guards import Guards
from amplifier_sdk.delegation import (
    ChildObserver,
    ChildRecord,
    HookInheritance,
    ProviderPreference,
    ResumeOptions,
    ToolInheritance,
)
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.messages import MessageDict

__all__ = ["SELF", "SpawnRequest", "child_plan", "instruction_of", "preferences_of"]

SELF = "self"
"""The agent that is the parent itself."""

RECORDED: Final = (
    "tool_inheritance",
    "hook_inheritance",
    "orchestrator_config",
    "session_metadata",
)
"""What is recorded of a request, besides the agent."""


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
    continues: bool = False
    recorded: Mapping[str, JSONValue] = attrs.field(factory=dict)

    @property
    def record(self) -> dict[str, JSONValue]:
        """What is recorded of it, to make the child's plan again, as JSON data; see `ChildRecord.request`."""
        asked = {name: getattr(self, name) for name in RECORDED}
        return {
            name: _plain(value) for name, value in asked.items() if value is not None
        }

    @classmethod
    def again(cls, record: ChildRecord, **options: Unpack[ResumeOptions]) -> Self:
        """Ask for another turn of a child; what is given by now narrows what was asked when it was made.

        Raises:
            ConfigError: what is recorded is none that was asked.
        """
        unknown = [name for name in record.request if name not in RECORDED]
        unread = [
            name
            for name, value in record.request.items()
            if not isinstance(value, Mapping)
        ]
        if unknown or unread:
            raise ConfigError.of(
                (unknown or unread)[0],
                "not what a child is asked",
                subject="child's record",
            )
        given = {
            name: value for name, value in options.items() if name != "sub_session_id"
        }
        return cls(agent_name=record.agent_name, recorded=record.request, **given)  # type: ignore[arg-type]  # by name

    def rules(self, name: str) -> Iterator[object]:
        """Yield the rules of inheritance, those that were recorded first; each narrows."""
        for rule in (self.recorded.get(name), getattr(self, name)):
            if rule is not None:
                yield rule

    def agent(self, agents: Mapping[str, object]) -> Mapping[str, object]:
        """Return the agent's partial plan.

        Raises:
            ConfigError: there is no such agent, or it is no mapping.
        """
        if self.agent_configs is None:
            known = agents
        else:
            known = self.agent_configs
        if self.agent_name not in known:
            if self.agent_name == SELF:
                return {}
            hint = (
                did_you_mean(self.agent_name, list(known))
                or f"; known: {', '.join(known) or 'none'}"
            )
            raise _problem(self.agent_name, f"no such agent{hint}")
        overlay = known[self.agent_name]
        if not isinstance(overlay, Mapping):
            raise _problem(
                self.agent_name,
                f"an agent is a partial mount plan; got {type(overlay).__name__}",
            )
        return overlay


def child_plan(
    guards: Guards, agent: Mapping[str, object], request: SpawnRequest
) -> dict[str, object]:
    """Return the child's plan, which is no looser than its parent's; nothing given is changed.

    Args:
        guards: those of the parent.
        agent: the agent's partial plan. Its `agents` may be `"all"`, `"none"` or a list of the names that the
            child knows, besides a mapping.
        request: what else was asked.

    Raises:
        ConfigError: the agent changes what it may only narrow.
    """
    kinds = guards.session.loader.kinds
    whole = gathered(guards.session.config, kinds)
    agent = guards.narrow(gathered(agent, kinds), whole, f"agents.{request.agent_name}")
    plan = _inherited(whole, agent, request, guards)
    for section in guards.sections:
        plan = replace_modules(plan, section, _list(agent.get(section)))
    agents, choice = plan.get("agents"), agent.get("agents")
    if (
        isinstance(agents, dict)
        and choice is not None
        and not isinstance(choice, Mapping)
    ):
        plan["agents"] = {
            name: agents[name] for name in _chosen(choice, agents, request.agent_name)
        }
        # a list or a word chooses among them, and is no value to lay over a mapping
        agent = {key: value for key, value in agent.items() if key != "agents"}
    plan = merge_plans(
        plan,
        {
            key: value
            for key, value in agent.items()
            if key != "hooks" or value is not None
        },
        kinds,
    )
    # what was recorded first: what is asked now counts where both speak
    for extras in (request.recorded, request.record):
        plan = merge_plans(plan, _extras(extras), kinds)
    # last, so that nothing laid over it can loosen it again
    return guards.limit(plan)


def _inherited(
    plan: dict[str, object],
    agent: Mapping[str, object],
    request: SpawnRequest,
    guards: Guards,
) -> dict[str, object]:
    """Return what of its parent's tools and hooks a child begins with; it has every guard, whatever the rules say."""
    for rule in request.rules("tool_inheritance"):
        plan = keep_modules(
            plan, "tools", _inherits(rule, "inherit_tools", "exclude_tools")
        )
    rules = [
        _inherits(rule, "inherit_hooks", "exclude_hooks")
        for rule in request.rules("hook_inheritance")
    ]
    if "hooks" in agent and agent["hooks"] is None:
        rules.append(lambda _: False)
    return keep_modules(
        plan,
        "hooks",
        lambda module: all(keeps(module) for keeps in rules) or guards.is_guard(module),
    )


def preferences_of(agent: Mapping[str, object]) -> tuple[ProviderPreference, ...]:
    """Return whom an agent asks by its own `providers`, unless its loop names one: they come before its parent's."""
    loop = agent.get("orchestrator")
    config = None
    if isinstance(loop, Mapping):
        config = loop.get("config")
    if isinstance(config, Mapping) and config.get("default_provider") is not None:
        return ()
    names = []
    for entry in _list(agent.get("providers")):
        name = entry
        if isinstance(entry, Mapping):
            name = entry.get("instance_id") or entry.get("module")
        if isinstance(name, str):
            names.append(name)
    return tuple({"provider": name} for name in names)


def instruction_of(agent_name: str, agent: Mapping[str, object]) -> str | None:
    """Return an agent's system instruction.

    Raises:
        ConfigError: `system` is no mapping with a text `instruction`.
    """
    system = agent.get("system")
    if system is None:
        return None
    instruction = system
    if isinstance(system, Mapping):
        instruction = system.get("instruction")
    if not isinstance(instruction, str):
        raise _problem(
            f"{agent_name}.system.instruction",
            f"a text; got {type(instruction).__name__}",
        )
    return instruction


def _list(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    return []


def _extras(asked: Mapping[str, JSONValue]) -> dict[str, object]:
    """Write what was asked besides the agent as a partial plan."""
    extras: dict[str, object] = {}
    if (config := asked.get("orchestrator_config")) is not None:
        extras["orchestrator"] = {"config": config}
    if (metadata := asked.get("session_metadata")) is not None:
        extras["session"] = {"metadata": metadata}
    return extras


def _plain(value: object) -> JSONValue:
    """Copy what was asked as JSON data: a rule of inheritance may hold tuples and sets."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return cast("JSONValue", value)


def _inherits(rule: object, inherit: str, exclude: str) -> Callable[[str], bool]:
    """Return whether a module is inherited under a rule of ids, which may be globs."""
    if not isinstance(rule, Mapping):
        problem = Problem(
            "", f"a mapping of {inherit} or {exclude}; got {type(rule).__name__}"
        )
        raise ConfigError([problem], subject="inheritance of a child")
    unknown = [key for key in rule if key not in (inherit, exclude)]
    if unknown:
        hint = (
            did_you_mean(unknown[0], (inherit, exclude))
            or f"; known: {inherit}, {exclude}"
        )
        raise ConfigError.of(
            unknown[0],
            f"unknown key{hint}",
            subject="inheritance of a child",
        )
    inherited, dropped = _patterns(rule, inherit), _patterns(rule, exclude) or ()

    def keeps(module: str) -> bool:
        return (inherited is None or _is_one_of(module, inherited)) and not _is_one_of(
            module, dropped
        )

    return keeps


def _patterns(rule: Mapping[str, object], key: str) -> tuple[str, ...] | None:
    patterns = rule.get(key)
    if patterns is None:
        return None
    if not isinstance(patterns, (list, tuple, set, frozenset)):
        raise ConfigError.of(
            key,
            f"a list of module ids; got {type(patterns).__name__}",
            subject="inheritance of a child",
        )
    return tuple(map(str, patterns))


def _is_one_of(module: str, patterns: Sequence[str]) -> bool:
    """Whether a module is meant by one of several ids, which may leave out its type: `bash` is `tool-bash`."""
    return any(
        fnmatchcase(name, pattern)
        for pattern in patterns
        for name in (module, module.partition("-")[2])
    )


def _chosen(choice: object, agents: Mapping[str, object], agent_name: str) -> list[str]:
    """Return the names of the agents that a child may delegate to itself."""
    if choice in ("all", "none"):
        if choice == "all":
            return list(agents)
        return []
    if isinstance(choice, (list, tuple)):
        return [name for name in agents if name in choice]
    raise _problem(
        f"{agent_name}.agents",
        f"'all', 'none', a list of names or a mapping; got {choice!r:.100}",
    )


def _problem(path: str, message: str) -> ConfigError:
    return ConfigError.of(f"agents.{path}", message, subject="mount plan")
