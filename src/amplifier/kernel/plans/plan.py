"""The mount plan: what a session is made of, read from a mapping into frozen values.

Every problem is found at once and named by its path, for example
`tools[1].confg: unknown key; did you mean 'config'?`. Source: the module contracts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from sys import intern
from typing import Final

import attrs

from amplifier.kernel.plans.keys import (
    ENTRY_KEYS,
    PLAN_KEYS,
    SESSION_KEYS,
    SINGLE_KEYS,
    Keys,
)
from amplifier_sdk.bounds import amount
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.hookspecs import KINDS, ModuleKind
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.values import Value

__all__ = [
    "ModuleSpec",
    "MountPlan",
    "MountPlanValidator",
    "PlanProblems",
    "SessionSettings",
]

_INJECTION_SIZE: Final[int | None] = 10_240


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ModuleSpec(Value):
    """One module of the plan: its id, where it comes from, its configuration, and where the plan says so.

    `config_path` is where its configuration stands, when that is not under `path`.
    """

    module: str
    path: str = attrs.field(converter=intern)  # one text for all sessions of a plan
    source: object = None
    config: Mapping[str, JSONValue] = attrs.field(factory=dict)
    instance_id: str | None = None
    config_path: str = attrs.field(
        default=attrs.Factory(lambda self: f"{self.path}.config", takes_self=True),
        converter=intern,
    )

    @property
    def plugin_name(self) -> str:
        """The name under which pluggy knows the module."""
        if self.instance_id is None:
            return self.module
        return f"{self.module}@{self.instance_id}"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SessionSettings(Value):
    """The plan's `session` section without its modules.

    `injection_size_limit` counts characters of one injection, `injection_budget_per_turn` tokens of all
    of a turn's (four characters each); `None` means no budget. `raw` puts the plan, which `session:start`
    carries, into `session:resume` and `session:fork` too.
    With `ask_before_changes` a tool call that does more than read needs a handler's approval or a person's.
    """

    limits: Limits = Limits()
    injection_size_limit: int | None = attrs.field(
        default=_INJECTION_SIZE, validator=attrs.validators.optional(amount)
    )
    injection_budget_per_turn: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(amount)
    )
    metadata: Mapping[str, JSONValue] | None = None
    raw: bool = False
    ask_before_changes: bool = False


@attrs.frozen(kw_only=True, eq=False, repr=False)
class MountPlan(Value):
    """What a session mounts: the modules of each kind, in the plan's order.

    A new conversation begins with the `instruction`.
    """

    session: SessionSettings
    modules: Mapping[str, tuple[ModuleSpec, ...]]
    agents: Mapping[str, object]
    instruction: str | None = None

    @classmethod
    def read(
        cls, plan: Mapping[str, object], kinds: Sequence[ModuleKind] = KINDS
    ) -> MountPlan:
        """Read a plan.

        Args:
            plan: the mapping that `docs/reference/mount-plan.md` describes; it is not changed.
            kinds: the module types whose sections the plan may have.

        Raises:
            ConfigError: with every problem and its path.
        """
        if not isinstance(plan, Mapping):
            raise ConfigError([_no_mapping(plan)], subject="mount plan")
        reader = _PlanReader(kinds)
        result = reader.read(plan)
        if reader.problems:
            raise ConfigError(reader.problems, subject="mount plan")
        return result


class PlanProblems(tuple[Problem, ...]):
    """Every problem of a plan, in the plan's order; none means that a session accepts it."""

    __slots__ = ()

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems; each keeps a session from being made."""
        return tuple(self)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Nothing: what is wrong with a plan is an error."""
        return ()

    def summary(self) -> str:
        """Say in one line how many problems there are."""
        count = len(self)
        return f"The mount plan has {count or 'no'} problem{'' if count == 1 else 's'}"

    def format_errors(self) -> str:
        """Write the problems, a line each."""
        return "\n".join(map(str, self))


class MountPlanValidator:
    """Finds what is wrong with a plan without raising, and without looking for the modules that it names.

    Args:
        kinds: the module types whose sections the plan may have.
    """

    def __init__(self, kinds: Sequence[ModuleKind] = KINDS) -> None:
        self._kinds = kinds

    def validate(self, plan: object) -> PlanProblems:
        """Return every problem of a plan; none means that a session accepts it."""
        if not isinstance(plan, Mapping):
            return PlanProblems([_no_mapping(plan)])
        reader = _PlanReader(self._kinds)
        reader.read(plan)
        return PlanProblems(reader.problems)


def _no_mapping(plan: object) -> Problem:
    return Problem("", f"a mount plan is a mapping; got {type(plan).__name__}")


class _PlanReader:
    def __init__(self, kinds: Sequence[ModuleKind]) -> None:
        self.problems: list[Problem] = []
        self._singles = tuple(kind for kind in kinds if kind.single)
        self._lists = tuple(kind for kind in kinds if not kind.single)

    def read(self, plan: Mapping[str, object]) -> MountPlan:
        sections = [kind.section for kind in (*self._singles, *self._lists)]
        self._refuse_unknown("", plan, [*PLAN_KEYS, *sections])
        session = self._mapping(
            "session", _MISSING if plan.get("session") is None else plan["session"]
        )
        modules = {
            kind.name: self._single(kind, session, plan) for kind in self._singles
        }
        modules |= {
            kind.name: tuple(self._list(kind, plan.get(kind.section)))
            for kind in self._lists
        }
        agents = self._mapping("agents", plan.get("agents"))
        return MountPlan(
            session=self._settings(session),
            modules=modules,
            agents=agents,
            instruction=self._instruction(plan.get("system")),
        )

    def _instruction(self, section: object) -> str | None:
        system = self._mapping("system", section)
        self._refuse_unknown("system", system, ("instruction",))
        instruction = system.get("instruction")
        if instruction is None or isinstance(instruction, str):
            return instruction
        self._problem("system.instruction", f"a text; got {type(instruction).__name__}")
        return None

    def _single(
        self,
        kind: ModuleKind,
        session: Mapping[str, object],
        plan: Mapping[str, object],
    ) -> tuple[ModuleSpec, ...]:
        """Read a module of the session section: an id with its parts beside it, or a mapping."""
        path = f"session.{kind.section}"
        entry = session.get(kind.section)
        section = self._mapping(kind.section, plan.get(kind.section))
        self._refuse_unknown(kind.section, section, ("config",))
        config = self._config(f"{kind.section}.config", section.get("config"))
        source = session.get(f"{kind.section}_source")
        if isinstance(entry, str) and entry:
            where = f"{kind.section}.config"
            return (
                ModuleSpec(
                    module=entry,
                    path=path,
                    source=source,
                    config=config,
                    config_path=where,
                ),
            )
        if entry is not None:
            spec = self._spec(path, entry, SINGLE_KEYS)
            if spec is None:
                return ()
            # the nearer one counts where both are given
            own = source
            if spec.source is not None:
                own = spec.source
            return (attrs.evolve(spec, source=own, config={**config, **spec.config}),)
        example = ""
        if kind.name in _EXAMPLES:
            example = f", for example {_EXAMPLES[kind.name]!r}"
        self._problem(path, f"missing; name the session's {kind.name} module{example}")
        return ()

    def _list(self, kind: ModuleKind, entries: object) -> Iterator[ModuleSpec]:
        if entries is None:
            return
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            self._problem(
                kind.section, f"a list of modules; got {type(entries).__name__}"
            )
            return
        seen: set[tuple[str, str | None]] = set()
        for index, entry in enumerate(entries):
            path = f"{kind.section}[{index}]"
            spec = self._spec(path, entry, ENTRY_KEYS)
            if spec is None:
                continue
            key = (spec.module, spec.instance_id)
            if key in seen:
                self._problem(
                    path,
                    f"module {spec.module!r} is listed twice; give each entry an 'instance_id'",
                )
            seen.add(key)
            yield spec

    def _spec(self, path: str, entry: object, keys: Keys) -> ModuleSpec | None:
        if isinstance(entry, str):
            entry = {"module": entry}
        if not isinstance(entry, Mapping):
            self._problem(
                path,
                f"a module id or a mapping with 'module'; got {type(entry).__name__}",
            )
            return None
        self._refuse_unknown(path, entry, tuple(keys))
        module, instance_id = entry.get("module"), entry.get("instance_id")
        if not isinstance(module, str) or not module:
            self._problem(
                f"{path}.module", f"a module id is a non-empty string; got {module!r}"
            )
            return None
        if instance_id is not None and (
            not isinstance(instance_id, str) or not instance_id
        ):
            self._problem(
                f"{path}.instance_id", f"a non-empty string; got {instance_id!r}"
            )
            # the problem is noted; reading continues, so that all problems are found
            instance_id = None
        return ModuleSpec(
            module=module,
            path=path,
            source=entry.get("source"),
            config=self._config(f"{path}.config", entry.get("config")),
            instance_id=instance_id,
        )

    def _settings(self, session: Mapping[str, object]) -> SessionSettings:
        singles = [
            key
            for kind in self._singles
            for key in (kind.section, f"{kind.section}_source")
        ]
        self._refuse_unknown("session", session, (*SESSION_KEYS, *singles))
        # Null is what a file has under a key whose lines are all comments; for a count it means no limit.
        given = {
            key: session[key]
            for key, (shape, _) in SESSION_KEYS.items()
            if key in session and (shape == "count" or session[key] is not None)
        }
        try:
            return read_config(SessionSettings, given, subject="mount plan")  # type: ignore[arg-type]  # JSON data
        except ConfigError as error:
            self.problems += (
                Problem(f"session.{problem.path}", problem.message)
                for problem in error.problems
            )
            # likewise: the plan is refused in the end, with everything that is wrong
            return SessionSettings()

    def _config(self, path: str, value: object) -> Mapping[str, JSONValue]:
        return self._mapping(path, value)  # type: ignore[return-value]  # plans are JSON data

    def _mapping(self, path: str, value: object) -> Mapping[str, object]:
        """Read a mapping; null is an empty one, as a section of a file is in which every line is a comment."""
        if value is _MISSING:
            self._problem(
                path,
                "missing; a plan needs a 'session' with 'orchestrator' and 'context'",
            )
            return {}
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return value
        self._problem(path, f"a mapping; got {type(value).__name__}")
        return {}

    def _refuse_unknown(
        self, path: str, mapping: Mapping[str, object], known: Sequence[str]
    ) -> None:
        for key in mapping:
            if key not in known:
                if path:
                    where = f"{path}.{key}"
                else:
                    where = str(key)
                hint = did_you_mean(str(key), known) or f"; known: {', '.join(known)}"
                self._problem(where, f"unknown key{hint}")

    def _problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))


_MISSING: Final = object()
_EXAMPLES: Final = {"orchestrator": "loop-basic", "context": "context-simple"}
