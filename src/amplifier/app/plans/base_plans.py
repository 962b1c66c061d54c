"""Mount plans: of what is installed, or from a plan file, with what the person chose on top."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier.app.plan_entries import entries, identity
from amplifier.app.plans.restrictions import lower_limits
from amplifier.app.plans.tool_rules import allow_tools, deny_tools
from amplifier.app.sources.absolute_sources import anchor_sources
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.plans.plan import MountPlanValidator
from amplifier_kit.files.documents import read_document
from amplifier_kit.installation import install_command
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "DEFAULT_PROVIDER",
    "PlanOptions",
    "choose_from",
    "complete_plan",
    "default_plan",
    "full_id",
    "installed_modules",
    "make_plan",
    "provider_and_model",
    "read_plan",
    "set_loop",
]

DEFAULT_PROVIDER: Final = "provider-local"
"""The provider of a session that names none: the model that needs no key."""

DEFAULT_ORCHESTRATOR: Final = "loop-basic"
WATCHED_ORCHESTRATOR: Final = "loop-streaming"
"""The loop that also reads what a person types while it works; it takes the other's place where it is installed."""

DEFAULT_CONTEXT: Final = "context-simple"
DEFAULT_TOOLS: Final = ("tool-filesystem",)
DEFAULT_HOOKS: Final = (
    "hooks-redaction",
    "hooks-logging",
    "hooks-approval",
    "hooks-backup",
)
"""The tools and hooks that a session has when they are installed."""


@attrs.frozen(kw_only=True)
class PlanOptions:
    """What a person chose for a session; `None` leaves a choice to the plan.

    Args:
        provider: the id of the provider module, with or without its `provider-`, or of an instance of the plan.
        model: the model that the loop asks for.
        first_tool: the tool that the model must call first in each turn.
        file: a mount plan, in YAML or JSON, instead of a profile and the settings.
        profile: the profile, instead of the one that the settings name; an empty name chooses none.
        limits: limits that can only lower those of the plan, be it new or recorded.
        effort: how much the model is to reason, as the provider understands it.
        system: the agent's instruction, in place of the profile's.
        denied_tools: tools that are denied from now on, by name, with `*` for any characters.
        allowed_tools: tools that run unasked this time, likewise, where no other rule is stricter.
    """

    provider: str | None = None
    model: str | None = None
    first_tool: str | None = None
    file: Path | None = None
    profile: str | None = None
    limits: Mapping[str, JSONValue] = attrs.field(factory=dict)
    effort: str | None = None
    system: str | None = attrs.field(default=None, repr=False)
    denied_tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()

    @property
    def lasting(self) -> Self:
        """What of it is recorded with the session: not what was said for one time."""
        return attrs.evolve(self, first_tool=None, allowed_tools=())

    def for_once(self, plan: Mapping[str, JSONValue]) -> JSONObject:
        """Return a plan with what was said for one time."""
        changed = allow_tools(plan, self.allowed_tools)
        if self.first_tool is not None:
            set_loop(changed, "first_tool", self.first_tool)
        return changed


def make_plan(
    options: PlanOptions,
    installed: Collection[str] | None = None,
    base: Mapping[str, JSONValue] | None = None,
) -> JSONObject:
    """Make a mount plan of what a person chose.

    Args:
        options: what the person chose.
        installed: the ids of the modules that can be mounted; default what this interpreter has.
        base: the plan that is chosen from where no plan file is named; default the one of what is installed.

    Raises:
        ConfigError: the plan file has problems, or a module of the default plan is not installed.
    """
    if installed is None:
        installed = installed_modules()
    chosen = options.provider
    if options.file is None and base is None:
        provider = DEFAULT_PROVIDER
        if chosen is not None:
            provider = full_id(chosen, installed)
        plan = default_plan(installed, provider)
    else:
        plan = dict(base or {})
        if options.file is not None:
            plan = read_plan(options.file)
        if chosen is not None:
            plan["providers"] = _only(chosen, entries(plan, "providers"), installed)
    return options.for_once(_lastingly(plan, options))


def choose_from(
    plan: Mapping[str, JSONValue],
    offered: Mapping[str, JSONValue],
    options: PlanOptions,
) -> JSONObject:
    """Return a plan with another provider and model, where they were chosen.

    The provider is one of the plan's, else one of another plan's with its configuration there, else a new one. What
    the loop was to ask of the one before means nothing to another.

    Args:
        plan: the plan; it is not changed.
        offered: the other plan.
        options: what the person chose; all that is recorded counts.
    """
    chosen = dict(plan)
    if options.provider is not None:
        known = entries(plan, "providers")
        named = {identity(entry) for entry in known}
        offers = entries(offered, "providers")
        more = [entry for entry in offers if identity(entry) not in named]
        only = _only(options.provider, [*known, *more], installed_modules())
        chosen["providers"] = only
        # The loop's provider and model belong to the one that was replaced: asked of
        # another, they would fail the first turn.
        if named != set(map(identity, only)):
            for key in ("default_provider", "model"):
                set_loop(chosen, key, None)
    return _lastingly(chosen, options)


def _lastingly(plan: JSONObject, options: PlanOptions) -> JSONObject:
    """Put into a plan what is recorded of a person's choices, but for the provider."""
    if options.model is not None:
        set_loop(plan, "model", options.model)
    if options.effort is not None:
        set_loop(plan, "reasoning_effort", options.effort)
    return lower_limits(deny_tools(plan, options.denied_tools), options.limits)


def installed_modules() -> list[str]:
    """Return the ids of the modules that this interpreter can mount."""
    return [found.id for found in ModuleLoader().discover()]


def full_id(provider: str, known: Collection[str]) -> str:
    """Return the id of a provider that may be named without its prefix; a known one stays as it is."""
    if provider in known or provider.startswith("provider-"):
        return provider
    return f"provider-{provider}"


def default_plan(
    installed: Collection[str], provider: str | None = DEFAULT_PROVIDER
) -> JSONObject:
    """Return the plan of what is installed.

    Args:
        installed: the ids of the modules that can be mounted.
        provider: its provider; `None` leaves it without one.

    Raises:
        ConfigError: a module that every session needs is not installed; names the command that installs it.
    """
    # A provider that was asked for by name is left to the loader, which names the nearest one.
    needed = [
        _default_loop(installed),
        DEFAULT_CONTEXT,
        *([provider] if provider == DEFAULT_PROVIDER else []),
    ]
    missing = [module for module in needed if module not in installed]
    if missing:
        remedy = _remedy(missing, installed)
        raise ConfigError.of(", ".join(missing), remedy, subject="default mount plan")
    own: JSONObject = {
        "providers": [] if provider is None else [{"module": provider}],
        "tools": _entries_of(DEFAULT_TOOLS, installed),
    }
    return complete_plan(own, installed)


def complete_plan(
    plan: Mapping[str, JSONValue], installed: Collection[str]
) -> JSONObject:
    """Return a plan with what is installed of loop, context, provider and hooks, where it says nothing of them.

    Tools are not among them: what an agent can do is said by whoever wrote the plan. Changes are asked about, also
    where no module of the plan sees to that, unless the plan says otherwise.

    Args:
        plan: the plan, as far as it goes.
        installed: the ids of the modules that can be mounted.
    """
    session = {"orchestrator": _default_loop(installed), "context": DEFAULT_CONTEXT}
    session = {key: module for key, module in session.items() if module in installed}
    own = as_object(plan.get("session"))
    completed: JSONObject = {
        # Defaults first: whatever the plan says of its session stays.
        "session": {**session, "ask_before_changes": True, **own},
        "providers": _entries_of([DEFAULT_PROVIDER], installed),
        **{section: value for section, value in plan.items() if section != "session"},
    }
    completed.setdefault("hooks", _entries_of(DEFAULT_HOOKS, installed))
    return completed


def _entries_of(modules: Iterable[str], installed: Collection[str]) -> list[JSONValue]:
    return [{"module": module} for module in modules if module in installed]


def _default_loop(installed: Collection[str]) -> str:
    if WATCHED_ORCHESTRATOR in installed:
        return WATCHED_ORCHESTRATOR
    return DEFAULT_ORCHESTRATOR


def _remedy(missing: Collection[str], installed: Collection[str]) -> str:
    command = install_command(*(f"amplifier-module-{module}" for module in missing))
    text = f"not installed; install with: {command}"
    others = sorted(module for module in installed if module.startswith("provider-"))
    if DEFAULT_PROVIDER in missing and others:
        text += f"; or choose an installed provider: {', '.join(others)}"
    return text


def read_plan(path: Path) -> JSONObject:
    """Read a plan file and refuse one with problems, so that options are put into a sound plan.

    Raises:
        ConfigError: it cannot be read, or has problems.
    """
    plan = read_document(path)
    problems = MountPlanValidator().validate(plan)
    if problems or not isinstance(plan, dict):
        raise ConfigError(problems, subject=f"mount plan {str(path)!r}")
    return anchor_sources(plan, path.absolute().parent)


def _only(
    provider: str, known: Sequence[JSONObject], installed: Collection[str]
) -> list[JSONObject]:
    """Return the entries of one provider or instance as they are; else a new entry."""
    module = full_id(provider, installed)
    # An instance is more precise than its module, which may stand in the plan several
    # times.
    named = [entry for entry in known if entry.get("instance_id") == provider]
    alike = [entry for entry in known if entry.get("module") == module]
    return named or alike or [{"module": module}]


def set_loop(plan: JSONObject, key: str, value: str | None) -> None:
    """Set one key of the orchestrator's configuration, in whichever of its two places it stands.

    `None` takes the key away, from both.
    """
    session = as_object(plan.get("session"))
    entry, section = session.get("orchestrator"), as_object(plan.get("orchestrator"))
    if isinstance(entry, Mapping):
        plan["session"] = {**session, "orchestrator": _with_key(entry, key, value)}
        # The entry wins over the section below, which needs no copy of it.
        if value is not None:
            return
    if section or value is not None:
        plan["orchestrator"] = _with_key(section, key, value)


def _with_key(
    loop: Mapping[str, JSONValue], key: str, value: str | None
) -> Mapping[str, JSONValue]:
    config = as_object(loop.get("config"))
    if value is not None:
        return {**loop, "config": {**config, key: value}}
    if key not in config:
        return loop
    del config[key]
    return {**loop, "config": config}


def provider_and_model(plan: Mapping[str, JSONValue]) -> tuple[str | None, str | None]:
    """Return the provider and the model that a plan's loop asks first; `None` where the plan leaves it open."""
    session = as_object(plan.get("session"))
    loop = {
        **as_object(as_object(plan.get("orchestrator")).get("config")),
        **as_object(as_object(session.get("orchestrator")).get("config")),
    }
    provider, model = loop.get("default_provider"), loop.get("model")
    providers = entries(plan, "providers")
    if provider is None and len(providers) == 1:
        provider = providers[0].get("module")
    return (
        provider if isinstance(provider, str) else None,
        model if isinstance(model, str) else None,
    )
