"""What the plan of now restricts more than a recorded one: that is added to it, and nothing else.

Hooks that the recorded plan lacks are added, tools that were taken away since are left out, limits become the lower
ones. Of a module that both plans have, the recorded configuration counts, with what only restricts: rules that deny
or ask, entries of lists that deny, whatever requires, and the stricter one of two decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, cast

import attrs

from amplifier.app.plan_entries import entries, identity, label
from amplifier.kernel.plans.overlays import merge_plans
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import Limits

__all__ = ["Restricted", "find_lacking", "lower_limits", "restrict"]

# Decisions that several modules take, in one scale.
_STRICTNESS: Final = {"allow": 0, "continue": 0, "warn": 0, "ask": 1, "deny": 2}
_DECISIONS: Final = ("otherwise", "unlisted", "default_action", "on_failure")
_DENIES: Final = (
    "denied_",
    "deny_",
    "disallowed_",
    "blocked_",
    "protected_",
    "hidden_",
    "exclude_",
)
_ASKS: Final = "ask_before_changes"
_SINGLES: Final = ("orchestrator", "context")


@attrs.frozen(kw_only=True)
class Restricted:
    """A plan with the restrictions of another one, the tools that it lost, and what cannot be combined."""

    plan: JSONObject
    removed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def restrict(
    recorded: Mapping[str, JSONValue],
    present: Mapping[str, JSONValue],
    *,
    agent: str | None = None,
) -> Restricted:
    """Add to a recorded plan what the plan of now restricts more.

    Args:
        recorded: the plan of a stored session; it is not changed.
        present: the plan that a new session would have.
        agent: the agent of a child, which may have tools that its parent lacks.
    """
    # Merging with nothing writes modules that are named by their ids alone as mappings.
    base = cast("JSONObject", merge_plans(recorded, {}))
    now = cast("JSONObject", merge_plans(present, {}))
    work = _Work()
    agents = as_object(now.get("agents"))
    offered = [
        *entries(now, "tools"),
        *entries(as_object(agents.get(agent or "")), "tools"),
    ]
    # Without the section the recorded plan has no tools, and nothing of now may add
    # some.
    if "tools" in base:
        base["tools"] = work.tools(entries(base, "tools"), offered)
    if "hooks" in base or "hooks" in now:
        base["hooks"] = work.hooks(entries(base, "hooks"), entries(now, "hooks"))
    base["session"] = work.session(
        as_object(base.get("session")), as_object(now.get("session"))
    )
    if "agents" in base:
        base["agents"] = work.agents(as_object(base["agents"]), agents)
    removed, problems = tuple(work.removed), tuple(work.problems)
    return Restricted(plan=base, removed=removed, problems=problems)


def find_lacking(
    recorded: Mapping[str, JSONValue], present: Mapping[str, JSONValue]
) -> list[str]:
    """Return the guards of a recorded plan that a plan of now lacks, by their places.

    What a hook or a tool is configured with must be what `restrict` would make of both
    plans: which of its keys restrict and which allow, the module alone knows.

    Args:
        recorded: the plan of a stored session.
        present: the plan that it would be resumed with; it may restrict more.
    """
    now = cast("JSONObject", merge_plans(present, {}))
    required = restrict(recorded, now)
    places = [problem.path for problem in required.problems]
    return list(dict.fromkeys([*places, *_lacking(required.plan, now)]))


def _lacking(required: JSONObject, now: JSONObject, path: str = "") -> Iterator[str]:
    for section in ("hooks", "tools"):
        known = {identity(entry): entry for entry in entries(now, section)}
        for entry in entries(required, section):
            # Compared as configured, not by name: a guard with other rules is another
            # guard.
            if _plain(known.get(identity(entry), {})) != _plain(entry):
                yield f"{path}{section}[{label(entry)}]"
    session, wanted = as_object(now.get("session")), as_object(required.get("session"))
    if wanted.get(_ASKS) is True and session.get(_ASKS) is not True:
        yield f"{path}session.{_ASKS}"
    limits = as_object(session.get("limits"))
    for name, limit in as_object(wanted.get("limits")).items():
        if limits.get(name) != limit:
            yield f"{path}session.limits.{name}"
    agents = as_object(now.get("agents"))
    for name, agent in as_object(required.get("agents")).items():
        place = f"{path}agents.{name}."
        yield from _lacking(as_object(agent), as_object(agents.get(name)), place)


@attrs.define(eq=False)
class _Work:
    """One plan being restricted."""

    removed: list[str] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)

    def tools(
        self, recorded: Sequence[JSONObject], present: Sequence[JSONObject]
    ) -> list[JSONValue]:
        known = {identity(entry): entry for entry in present}
        retained: list[JSONValue] = []
        for entry in recorded:
            if identity(entry) in known:
                retained.append(self._module(entry, known[identity(entry)]))
            else:
                self.removed.append(label(entry))
        return retained

    def hooks(
        self, recorded: Sequence[JSONObject], present: Sequence[JSONObject]
    ) -> list[JSONValue]:
        known = {identity(entry): entry for entry in present}
        base = {identity(entry) for entry in recorded}
        retained: list[JSONValue] = [
            self._module(entry, known.get(identity(entry), {})) for entry in recorded
        ]
        # New hooks come last: hooks of one priority run in the plan's order, which
        # stays.
        return [*retained, *(entry for entry in present if identity(entry) not in base)]

    def session(self, recorded: JSONObject, present: JSONObject) -> JSONObject:
        session = dict(recorded)
        for name in _SINGLES:
            old, new = recorded.get(name), present.get(name)
            if (
                isinstance(old, Mapping)
                and isinstance(new, Mapping)
                and identity(old) == identity(new)
            ):
                session[name] = self._module(old, new)
        if present.get(_ASKS) is True:
            session[_ASKS] = True
        limits = _lower(
            as_object(recorded.get("limits")), as_object(present.get("limits"))
        )
        if limits:
            return {**session, "limits": limits}
        return session

    def agents(self, recorded: JSONObject, present: JSONObject) -> JSONObject:
        """An agent adds to its session's plan: a section that it lacks says nothing. One that is gone is left out."""
        agents: JSONObject = {}
        for name, entry in recorded.items():
            now = present.get(name)
            if not isinstance(entry, Mapping) or not isinstance(now, Mapping):
                # An agent that was taken away since may not be delegated to any more.
                if isinstance(entry, Mapping):
                    self.removed.append(f"agent {name}")
                continue
            agent: JSONObject = dict(entry)
            if "tools" in agent:
                agent["tools"] = self.tools(
                    entries(entry, "tools"), entries(now, "tools")
                )
            if "hooks" in agent or "hooks" in now:
                agent["hooks"] = self.hooks(
                    entries(entry, "hooks"), entries(now, "hooks")
                )
            if "session" in agent or "session" in now:
                agent["session"] = self.session(
                    as_object(entry.get("session")), as_object(now.get("session"))
                )
            agents[name] = agent
        return agents

    def _module(
        self, recorded: Mapping[str, JSONValue], present: Mapping[str, JSONValue]
    ) -> JSONObject:
        old, new = as_object(recorded.get("config")), as_object(present.get("config"))
        config = self._config(old, new, str(recorded.get("module")))
        if config != old:
            return {**recorded, "config": config}
        return dict(recorded)

    def _config(
        self, recorded: JSONObject, present: JSONObject, path: str
    ) -> JSONObject:
        config = dict(recorded)
        for key, value in present.items():
            old, where = recorded.get(key), f"{path}.{key}"
            if old == value:
                continue
            if key == "rules" and isinstance(value, list):
                known = as_list(old)
                config[key] = [
                    *known,
                    *(rule for rule in value if _is_strict(rule) and rule not in known),
                ]
            elif key.startswith(_DENIES) and isinstance(value, list):
                self._deny(config, key, value, where)
            elif key.startswith("require_") and value:
                config[key] = _required(old, value)
            elif key in _DECISIONS and _strictness(value) > _strictness(old):
                config[key] = value
            # Only what restricts inside is taken; an empty result means that nothing
            # does.
            elif isinstance(value, Mapping) and (
                old is None or isinstance(old, Mapping)
            ):
                inner = self._config(as_object(old), dict(value), where)
                if inner:
                    config[key] = inner
        return config

    def _deny(
        self, config: JSONObject, key: str, value: Sequence[JSONValue], where: str
    ) -> None:
        """Deny what either list does; a list that was left to its default cannot be added to."""
        old = config.get(key)
        if not isinstance(old, list):
            problem = "it was given since; what it denied by default is not known, so the two cannot be combined"
            self.problems.append(Problem(where, problem))
            return
        new = [
            entry
            for entry in value
            # An exclamation mark takes something out of what is denied: that would
            # allow more.
            if entry not in old and not str(entry).startswith("!")
        ]
        config[key] = [*old, *new]


def lower_limits(
    plan: Mapping[str, JSONValue], limits: Mapping[str, JSONValue]
) -> JSONObject:
    """Return a plan whose session's limits are no higher than these."""
    if not limits:
        return dict(plan)
    session = as_object(plan.get("session"))
    lowered = _lower(as_object(session.get("limits")), dict(limits))
    return {**plan, "session": {**session, "limits": lowered}}


def _lower(recorded: JSONObject, present: JSONObject) -> JSONObject:
    """Return the limits, each as the lower of two; one that is not given is the default, which may be none."""
    # A limit that is not recorded was the default's, which may be lower than the new
    # one.
    defaults = {field.name: field.default for field in attrs.fields(Limits)}
    limits = dict(recorded)
    for name, value in present.items():
        new = _amount(value)
        old = _amount(recorded.get(name, cast("JSONValue", defaults.get(name))))
        if new is not None and (old is None or new < old):
            limits[name] = value
    return limits


def _amount(value: object) -> Decimal | None:
    try:
        if value is None or isinstance(value, bool):
            return None
        return Decimal(str(value))
    except ArithmeticError:
        return None  # what is no amount is an error of the plan, which names it


def _required(old: JSONValue, new: JSONValue) -> JSONValue:
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *(entry for entry in new if entry not in old)]
    return new


def _is_strict(rule: JSONValue) -> bool:
    """Whether a rule denies or asks; one in a form that is not known is taken for one that does."""
    if not isinstance(rule, Mapping):
        return False
    decision = rule.get("decision", rule.get("action"))
    return _STRICTNESS.get(str(decision), 2) > 0 and decision != "auto_approve"


def _strictness(value: JSONValue) -> int:
    return _STRICTNESS.get(str(value), 0)


def _plain(entry: Mapping[str, JSONValue]) -> JSONObject:
    """Return a module of a plan without what says nothing."""
    return {key: value for key, value in entry.items() if value not in (None, {})}
