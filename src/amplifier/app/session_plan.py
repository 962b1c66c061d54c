"""What a session is made of: a profile or what is installed, the settings, the agents, and what the person chose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.agents import AgentLibrary
from amplifier.app.base_plans import (
    DEFAULT_PROVIDER,
    PlanOptions,
    complete_plan,
    default_plan,
    installed_modules,
    make_plan,
    set_loop,
)
from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import Places
from amplifier.app.invalid_files import InvalidFile
from amplifier.app.profiles.compiler import CompiledProfile, choose_profile
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.projects import ProjectFiles
from amplifier.app.settings.expansion import expand
from amplifier.app.settings.plan_overlay import apply_settings
from amplifier.app.settings.schema import DisplaySettings
from amplifier.app.settings.settings import Settings, load_settings
from amplifier.app.store.recorded import PlanFile
from amplifier_sdk.configuration import read_config
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Composition", "bare_composition", "compose", "display_of", "fill_plan"]

_TEXTS: Final = ("description", "system")
"""What of an agent is text for a model, in which `${…}` means nothing."""


@attrs.frozen(kw_only=True)
class Composition:
    """What a session is made of.

    Args:
        plan: the mount plan, whole.
        own: the part of it that the profile says.
        ground: the plan of the profile and of what is installed, before settings and choices.
        settings: the settings that hold.
        places: where the files stand.
        project: what of the project's folder was used, and what was withheld.
        collections: the collections there are.
        profile: the profile, where one was chosen.
        display: what the person is shown.
        is_plan_file: whether the plan is a file's, which settings do not change.
        plan_file: that file.
        written: the plan before references to the environment were filled in; it is what is recorded.
        is_literal: whether references in `written` mean nothing.
        chosen: the provider and the model that the person chose.
        agent_name: the agent, where it is an agent's session; it is not told what the profile says.
        replaces_recorded: whether the person wants a stored session to be made of it,
            whatever guards the session had.
        invalid: the files of agents that are left out because they cannot be read.
    """

    plan: Mapping[str, JSONValue] = attrs.field(repr=False)
    own: Mapping[str, JSONValue] = attrs.field(factory=dict, repr=False)
    ground: Mapping[str, JSONValue] = attrs.field(factory=dict, repr=False)
    places: Places
    project: ProjectFiles
    collections: CollectionLibrary
    settings: Settings = attrs.field(factory=Settings)
    profile: CompiledProfile | None = None
    display: DisplaySettings = attrs.field(factory=DisplaySettings)
    is_plan_file: bool = False
    plan_file: PlanFile | None = None
    written: Mapping[str, JSONValue] = attrs.field(
        default=attrs.Factory(lambda self: self.plan, takes_self=True), repr=False
    )
    is_literal: bool = False
    chosen: PlanOptions = attrs.field(factory=PlanOptions, repr=False)
    agent_name: str | None = None
    replaces_recorded: bool = False
    invalid: tuple[InvalidFile, ...] = ()

    @property
    def instruction(self) -> str | None:
        """The agent's instruction, mentions not yet followed; `None` where no profile has one."""
        if self.profile is not None:
            return self.profile.instruction or None
        return None


def bare_composition(places: Places, *, session: Path | None = None) -> Composition:
    """Say that a session is made of nothing; for those who look at modules where no session can be made.

    Args:
        places: where the files stand.
        session: the folder of a session that has settings of its own.

    Raises:
        ConfigError: a file of settings has problems.
    """
    project = ProjectFiles(places)
    settings = load_settings(places, session=session, project=project)
    return Composition(
        plan={},
        settings=settings,
        places=places,
        project=project,
        collections=CollectionLibrary(places, project),
    )


def compose(
    options: PlanOptions,
    places: Places,
    *,
    installed: Collection[str] | None = None,
    session: Path | None = None,
    project: ProjectFiles | None = None,
    fill: bool = True,
) -> Composition:
    """Put together what a session is made of.

    A plan file is taken as it is: neither a profile nor the settings change it.

    Args:
        options: what the person chose.
        places: where the files stand.
        installed: the ids of the modules that can be mounted; default what this interpreter has.
        session: the folder of a session that has settings of its own.
        project: what of the project's folder may be used.
        fill: put values in place of references to the environment; a plan that is only shown keeps them.

    Raises:
        ConfigError: a file has problems, or something that is named is missing; names the file and the place.
    """
    project = project or ProjectFiles(places)
    settings = load_settings(places, session=session, project=project)
    collections = CollectionLibrary(places, project)
    if installed is None:
        installed = installed_modules()
    profile: CompiledProfile | None = None
    own: JSONObject = {}
    ground: JSONObject = {}
    base: JSONObject | None = None
    invalid: tuple[InvalidFile, ...] = ()
    if options.file is None:
        options = attrs.evolve(
            options, provider=options.provider or settings.read().config.active
        )
        library = ProfileLibrary(places, project, collections, settings)
        if options.provider or settings.read().config.providers:
            provider = None
        else:
            provider = DEFAULT_PROVIDER
        default = partial(default_plan, installed, provider)
        profile = choose_profile(options.profile, library, settings, default)
        own = _own(profile, options)
        if profile is None:
            ground = default()
        else:
            ground = _completed(own, installed, is_provider_named=provider is None)
        known_agents = AgentLibrary(places, project, collections)
        agents = known_agents.choose(
            "all" if profile is None else profile.agents,
            apply_settings(ground, settings),
        )
        invalid = tuple(known_agents.invalid)
        if profile is not None:
            agents = {**agents, **profile.own_agents}
        base = apply_settings(
            {**ground, "agents": agents} if agents else ground, settings
        )
    # Which tool comes first is said for one time: it is no part of what the session is made of.
    written = make_plan(attrs.evolve(options, first_tool=None), installed, base)
    if base is None or not fill:
        plan = dict(written)
    else:
        plan = fill_plan(written, settings)
    if options.first_tool is not None:
        set_loop(plan, "first_tool", options.first_tool)
    return Composition(
        plan=plan,
        own=own,
        ground=ground,
        settings=settings,
        places=places,
        project=project,
        collections=collections,
        profile=profile,
        display=display_of(profile, settings),
        is_plan_file=options.file is not None,
        plan_file=None if options.file is None else PlanFile.of(options.file),
        written=written,
        is_literal=options.file is not None,
        chosen=options,
        invalid=invalid,
    )


def display_of(profile: CompiledProfile | None, settings: Settings) -> DisplaySettings:
    """Return what a person is shown: what the settings say wins over what a profile says."""
    if profile is None:
        own = {}
    else:
        own = {name: value for name, value in profile.ui.items() if value is not None}
    shown = settings.values.get("ui")
    merged = {**own, **(shown if isinstance(shown, dict) else {})}
    return read_config(
        DisplaySettings,
        {name: value for name, value in merged.items() if value is not None},
        subject="settings",
    )


def _own(profile: CompiledProfile | None, options: PlanOptions) -> JSONObject:
    """Return what a profile says of a plan; a section that it leaves empty on purpose is there, and empty."""
    if profile is None:
        return {}
    empty: JSONObject = {
        section: [] for section in ("providers", "hooks") if profile.says(section)
    }
    plan = {**empty, **profile.plan}
    _choose_model(plan, profile.model, options.provider)
    return plan


def _completed(
    own: JSONObject, installed: Collection[str], *, is_provider_named: bool
) -> JSONObject:
    """Return what a profile says of a plan with what is installed, where it says nothing."""
    named: JSONObject
    if is_provider_named:
        named = {"providers": []}
    else:
        named = {}
    plan = complete_plan({**named, **own}, installed)
    return {section: value for section, value in plan.items() if value != []}


def _choose_model(plan: JSONObject, model: str | None, chosen: str | None) -> None:
    """Ask the loop for the model that a profile names, as `model` or `provider/model`.

    Another provider that was chosen has models of its own.
    """
    if model is None:
        return
    provider, slash, name = model.partition("/")
    if chosen is not None and slash and chosen.removeprefix("provider-") != provider:
        return
    if slash:
        set_loop(plan, "default_provider", provider)
    set_loop(plan, "model", name or provider)


def fill_plan(plan: Mapping[str, JSONValue], settings: Settings) -> JSONObject:
    """Return a plan with its references to the environment filled in, except in what models read.

    Raises:
        ConfigError: a name has no value and no default.
    """
    agents = plan.get("agents")
    result = {
        section: value
        if section == "agents"
        else expand(value, settings.lookup, path=section, subject="plan")
        for section, value in plan.items()
    }
    if isinstance(agents, Mapping):
        result["agents"] = {
            name: _filled_agent(name, agent, settings) for name, agent in agents.items()
        }
    return result


def _filled_agent(name: str, agent: JSONValue, settings: Settings) -> JSONValue:
    if not isinstance(agent, Mapping):
        return agent
    return {
        key: value
        if key in _TEXTS
        else expand(value, settings.lookup, path=f"agents.{name}.{key}", subject="plan")
        for key, value in agent.items()
    }
