"""What guards a session, and so every session below it: an agent can only narrow.

Whether a hook module guards is decided by what it has registered. It is an observer where it has handlers, every one
registered with `decides=False`, and offers no capability. Any other may block, ask, or change what runs, and is a
guard: no agent, no model and no rule of inheritance takes it away. That is for the application alone, by
`session.fork()`. A module that is not mounted, of which nothing is known, is taken for a guard.

A hook or a tool that the session has, or a module of an application's own type, is configured by the session: what its
author declares in `agent_config` an agent may make stricter, and nothing else. Its source stays as well. A limit of
an agent is the stricter one of its own and the session's, and where the session asks before changes an agent does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import attrs

from amplifier.kernel.plans.overlays import merge_values
from amplifier.kernel.plans.plan import SessionSettings
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.limits import Limits
from amplifier_sdk.restrictions import Restriction

if TYPE_CHECKING:
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = ["Guards", "is_looser"]

_Plan = dict[str, object]

_OPEN: Final = "providers"
"""The section whose modules guard nothing: an agent may choose another model, for example."""

_INJECTIONS: Final = ("injection_size_limit", "injection_budget_per_turn")


@attrs.define
class Guards:
    """The guards of one session as they are now, for the plans of those below it."""

    session: AmplifierSession
    _problems: list[Problem] = attrs.field(factory=list)

    def is_guard(self, module: str) -> bool:
        """Whether a hook module of the session guards it, in any of its instances."""
        instances = [
            loaded
            for (name, _), loaded in self.session.modules.items()
            if name == module
        ]
        # not mounted, so nobody knows what it does: it counts as a guard
        return not instances or not all(
            self._observes(loaded.plugin) for loaded in instances
        )

    def narrow(
        self, agent: Mapping[str, object], plan: Mapping[str, object], where: str
    ) -> _Plan:
        """Return an agent's partial plan in which no module that the session has is looser than there.

        Args:
            agent: the partial plan, its modules as mappings.
            plan: the session's plan, likewise.
            where: the agent, for errors.

        Raises:
            ConfigError: it changes what it may not; all of it is named with its paths.
        """
        narrowed = dict(agent)
        for section in self.sections:
            entries, own = agent.get(section), plan.get(section)
            if isinstance(entries, list) and isinstance(own, list):
                path = f"{where}.{section}"
                narrowed[section] = [
                    self._narrowed(entry, own, f"{path}[{place}]")
                    for place, entry in enumerate(entries)
                ]
        if self._problems:
            raise ConfigError(self._problems, subject="mount plan")
        return narrowed

    def limit(self, plan: _Plan) -> _Plan:
        """Return a child's plan with limits that are no looser than the session's; what is none is left as it is."""
        session = plan.get("session")
        limits = None
        if isinstance(session, Mapping):
            limits = session.get("limits", {})
        if not isinstance(session, Mapping) or not isinstance(limits, Mapping):
            return plan
        own = self.session.plan.session
        names = [field.name for field in attrs.fields(Limits)]
        stricter = _stricter(names, limits, own.limits, _DEFAULTS.limits)
        if own.ask_before_changes:
            asks = {"ask_before_changes": True}
        else:
            asks = {}
        return {
            **plan,
            "session": {
                **session,
                **_stricter(_INJECTIONS, session, own, _DEFAULTS),
                **asks,
                "limits": {**limits, **stricter},
            },
        }

    @property
    def sections(self) -> Sequence[str]:
        """The lists of modules of the plan that the session alone configures."""
        return [
            kind.section
            for kind in self.session.loader.kinds
            if not kind.single and kind.section != _OPEN
        ]

    def _observes(self, plugin: object) -> bool:
        coordinator = self.session.coordinator
        handlers = coordinator.hooks.handlers_of(plugin)
        has_only_observers = bool(handlers) and all(
            handler.decides is False for handler in handlers
        )
        return has_only_observers and not coordinator.capabilities.is_offered_by(plugin)

    def _narrowed(self, entry: object, own: Sequence[object], path: str) -> object:
        """Return the session's entry with what an agent's makes stricter; the agent's where the session has none.

        Another instance of a module that the session has begins with the session's configuration.
        """
        module, instance = (
            _mapping(entry).get("module"),
            _mapping(entry).get("instance_id"),
        )
        same = [each for each in map(_mapping, own) if each.get("module") == module]
        exact = [each for each in same if each.get("instance_id") == instance]
        if not same:
            return entry
        # a new instance begins with one configuration, and which is not for us to guess
        if not exact and len(same) > 1:
            self._refuse(
                f"{path}.instance_id",
                f"its session has several {module!r}, and none of that id",
            )
            return entry
        base = (exact or same)[0]
        narrowed = {
            **base,
            "config": self._config(base, _mapping(entry).get("config"), path),
        }
        if instance is None:
            return narrowed
        return {**narrowed, "instance_id": instance}

    def _config(self, base: Mapping[str, object], asked: object, path: str) -> object:
        """Return the session's configuration of a module with what an agent makes stricter."""
        if not isinstance(asked, Mapping):
            # which the plan's reader names
            return base.get("config") if asked is None else asked
        config = dict(_mapping(base.get("config")))
        rules = self._rules(base)
        for key, value in asked.items():
            own = config.get(key)
            if (value is None and key not in config) or (
                value is not None and merge_values(own, value) == own
            ):
                continue
            try:
                config[key] = _narrowing(rules, key, str(base["module"]))(own, value)  # type: ignore[arg-type]  # plans are JSON data
            except ValueError as error:
                self._refuse(f"{path}.config.{key}", str(error))
        return config

    def _rules(self, base: Mapping[str, object]) -> Mapping[str, Restriction]:
        instance = base.get("instance_id")
        loaded = self.session.modules.get(
            (str(base["module"]), instance if isinstance(instance, str) else None)
        )
        if loaded is None:
            return {}
        return loaded.agent_config

    def _refuse(self, path: str, message: str) -> None:
        self._problems.append(Problem(path, message))


def is_looser(value: object, own: object) -> bool:
    """Whether a limit allows more than the session's; `None` is no limit, and what is no number is none's matter."""
    if own is None or value is None:
        return own is not None
    try:
        # exactly: as floats, two amounts of money may compare the wrong way
        return Decimal(str(value)) > Decimal(str(own))
    except ArithmeticError:
        return False


def _stricter(
    names: Sequence[str], asked: Mapping[str, object], own: object, defaults: object
) -> _Plan:
    """Return the session's values where those of an agent are looser, as JSON data."""
    values = {name: getattr(own, name) for name in names}
    return {
        name: str(value) if isinstance(value, Decimal) else value
        for name, value in values.items()
        if is_looser(asked.get(name, getattr(defaults, name)), value)
    }


def _narrowing(rules: Mapping[str, Restriction], key: str, module: str) -> Restriction:
    if key not in rules:
        may = ""
        if rules:
            may = f"; it can narrow {', '.join(rules)}"
        raise ValueError(
            f"an agent cannot change how its session configures {module!r}{may}"
        )
    return rules[key]


def _mapping(value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    return {}


_DEFAULTS: Final = SessionSettings()
