"""What a session is made of: a profile or what is installed, the settings, the agents, and what the person chose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import attrs

from amplifier.app.agents.library import AgentLibrary
from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.definitions import InvalidFile
from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import (
    DEFAULT_PROVIDER,
    PlanOptions,
    complete_plan,
    default_plan,
    installed_modules,
    make_plan,
    provider_and_model,
    set_loop,
)
from amplifier.app.profiles.compiler import CompiledProfile, choose_profile
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.settings.expansion import expand
from amplifier.app.settings.plan_overlay import apply_settings
from amplifier.app.settings.schema import DisplaySettings
from amplifier.app.settings.settings import Settings, load_settings
from amplifier.app.store.recorded import PlanFile
from amplifier.app.store.records import SessionRecord
from amplifier_kit.open_data import as_object
from amplifier_sdk.configuration import read_config
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "Composition",
    "bare_composition",
    "compose",
    "display_of",
    "fill_plan",
    "new_record",
]

_TEXTS: Final = ("description", "system")
"""What of an agent is text for a model, in which `${…}` means nothing."""


@attrs.frozen(kw_only=True)
class Composition:
    """What a session is made of.

    Args:
        plan: the mount plan.
        profile_plan: the part of it that the profile says.
        base_plan: the plan of the profile and of what is installed, before settings and choices.
        settings: the settings that hold.
        dirs: where the files stand.
        project: what of the project's folder was used, and what was withheld.
        collections: the collections there are.
        profile: the profile, where one was chosen.
        display: what the person is shown.
        plan_file: the file that the plan is read from; settings do not change that.
        written: the plan before references to the environment were filled in; it is what is recorded.
        is_literal: whether references in `written` mean nothing.
        chosen: the provider and the model that the person chose.
        agent_name: the agent, where it is an agent's session; it is not told what the profile says.
        replaces_recorded: whether the person wants a stored session to be made of it,
            whatever guards the session had.
        invalid: the files of agents that are left out because they cannot be read.
        system: the agent's instruction that the person gave, in place of the profile's; mentions mean nothing in it.
        denied_tools: the tools that the person denied this time, which must be there.
        allowed_tools: those that they allowed this time, likewise.
        is_probe: whether it only tries a provider, which reads nothing of the project.
    """

    plan: Mapping[str, JSONValue] = attrs.field(repr=False)
    profile_plan: Mapping[str, JSONValue] = attrs.field(factory=dict, repr=False)
    base_plan: Mapping[str, JSONValue] = attrs.field(factory=dict, repr=False)
    dirs: AppDirs
    project: ProjectFiles
    collections: CollectionLibrary
    settings: Settings = attrs.field(factory=Settings)
    profile: CompiledProfile | None = None
    display: DisplaySettings = attrs.field(factory=DisplaySettings)
    plan_file: PlanFile | None = None
    written: Mapping[str, JSONValue] = attrs.field(
        default=attrs.Factory(lambda self: self.plan, takes_self=True), repr=False
    )
    is_literal: bool = False
    chosen: PlanOptions = attrs.field(factory=PlanOptions, repr=False)
    agent_name: str | None = None
    replaces_recorded: bool = False
    invalid: tuple[InvalidFile, ...] = ()
    system: str | None = attrs.field(default=None, repr=False)
    denied_tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    is_probe: bool = False

    @property
    def reads_instructions(self) -> bool:
        """Whether sessions begin with the files of instructions; a plan file is final."""
        return not (self.is_probe or self.is_plan_file)

    @property
    def is_plan_file(self) -> bool:
        """Whether the plan is a file's."""
        return self.plan_file is not None

    @property
    def instruction(self) -> str | None:
        """The agent's instruction, mentions not yet followed; `None` where no profile has one."""
        if self.profile is not None:
            return self.profile.instruction or None
        return None


def bare_composition(
    dirs: AppDirs, *, session: Path | None = None, project: ProjectFiles | None = None
) -> Composition:
    """Say that a session is made of nothing; for those who look at modules where no session can be made.

    Args:
        dirs: where the files stand.
        session: the folder of a session that has settings of its own.
        project: what of the project's folder may be used.

    Raises:
        ConfigError: a file of settings has problems.
    """
    project = project or ProjectFiles(dirs)
    settings = load_settings(dirs, session=session, project=project)
    return Composition(
        plan={},
        settings=settings,
        dirs=dirs,
        project=project,
        collections=CollectionLibrary(dirs, project),
        display=display_of(None, settings),
    )


def compose(
    options: PlanOptions,
    dirs: AppDirs,
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
        dirs: where the files stand.
        installed: the ids of the modules that can be mounted; default what this interpreter has.
        session: the folder of a session that has settings of its own.
        project: what of the project's folder may be used.
        fill: put values in place of references to the environment; a plan that is only shown keeps them.

    Raises:
        ConfigError: a file has problems, or something that is named is missing; names the file and the place.
    """
    bare = bare_composition(dirs, session=session, project=project)
    if installed is None:
        installed = installed_modules()
    lasting = options.lasting
    if options.file is None:
        made = _of_profile(bare, lasting, installed)
    else:
        # What a plan file says is final: no reference of it is filled in, and no
        # profile completes it.
        written = make_plan(lasting, installed)
        made = attrs.evolve(
            bare,
            plan_file=PlanFile.of(options.file),
            written=written,
            is_literal=True,
            chosen=lasting,
        )
    plan = dict(made.written)
    if fill and not made.is_literal:
        plan = fill_plan(plan, made.settings)
    return attrs.evolve(
        made,
        plan=options.for_once(plan),
        system=options.system,
        denied_tools=options.denied_tools,
        allowed_tools=options.allowed_tools,
    )


def _of_profile(
    bare: Composition, options: PlanOptions, installed: Collection[str]
) -> Composition:
    """Compose a profile, or else what is installed, with the agents and the settings."""
    settings = bare.settings
    given = settings.read().config
    options = attrs.evolve(options, provider=options.provider or given.active)
    is_provider_named = bool(options.provider or given.providers)
    provider: str | None = DEFAULT_PROVIDER
    if is_provider_named:
        # Then the default one is not needed, nor has it to be installed.
        provider = None
    default = partial(default_plan, installed, provider)
    dirs, project, collections = bare.dirs, bare.project, bare.collections
    library = ProfileLibrary(dirs, project, collections, settings)
    profile = choose_profile(options.profile, library, settings, default)
    known_agents = AgentLibrary(dirs, project, collections)
    if profile is None:
        profile_plan, base_plan = {}, default()
        # The settings come first: an agent of a project may name only modules that the
        # session has in the end.
        agents = known_agents.choose("all", apply_settings(base_plan, settings))
    else:
        profile_plan = _profile_plan(profile, options.provider)
        base_plan = _completed(
            profile_plan, installed, is_provider_named=is_provider_named
        )
        # A project's agents may name only modules that the session will have.
        choice, session = profile.agents, apply_settings(base_plan, settings)
        agents = {**known_agents.choose(choice, session), **profile.own_agents}
    overlaid = dict(base_plan)
    if agents:
        overlaid["agents"] = agents
    return attrs.evolve(
        bare,
        profile=profile,
        profile_plan=profile_plan,
        base_plan=base_plan,
        display=display_of(profile, settings),
        written=make_plan(options, installed, apply_settings(overlaid, settings)),
        chosen=options,
        invalid=tuple(known_agents.invalid),
    )


def display_of(profile: CompiledProfile | None, settings: Settings) -> DisplaySettings:
    """Return what a person is shown: what the settings say wins over what a profile says."""
    shown: Mapping[str, JSONValue] = {}
    if profile is not None:
        shown = profile.ui
    merged = {
        # In a profile `null` leaves a key to the settings; in the settings it takes a
        # weaker scope's value away.
        **{name: value for name, value in shown.items() if value is not None},
        **as_object(settings.values.get("ui")),
    }
    return read_config(
        DisplaySettings,
        {name: value for name, value in merged.items() if value is not None},
        subject="settings",
    )


def _profile_plan(profile: CompiledProfile, provider: str | None) -> JSONObject:
    """Return what a profile says of a plan; a section that it leaves empty on purpose is there, and empty."""
    empty: JSONObject = {
        # Empty on purpose is not missing: what is installed must not fill it.
        section: []
        for section in ("providers", "hooks")
        if profile.says(section)
    }
    plan = {**empty, **profile.plan}
    _choose_model(plan, profile.model, provider)
    return plan


def _completed(
    profile_plan: JSONObject, installed: Collection[str], *, is_provider_named: bool
) -> JSONObject:
    """Return what a profile says of a plan with what is installed, where it says nothing."""
    named = dict(profile_plan)
    if is_provider_named:
        # The chosen provider is added by `make_plan`; the default one beside it would
        # be asked first.
        named.setdefault("providers", [])
    plan = complete_plan(named, installed)
    # A plan has no empty sections: they would read as "changed" beside one that never
    # had them.
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


def fill_plan(
    plan: Mapping[str, JSONValue], settings: Settings, path: str = ""
) -> JSONObject:
    """Return a plan with its references to the environment filled in, except in what models read.

    Args:
        plan: the plan; that of an agent is partial.
        settings: look the names up.
        path: the place of an agent's plan, with a dot behind it.

    Raises:
        ConfigError: a name has no value and no default.
    """
    filled: JSONObject = {}
    for key, value in plan.items():
        if key == "agents" and isinstance(value, Mapping):
            agents = dict(value)
            for name, agent in value.items():
                if isinstance(agent, Mapping):
                    place = f"{path}agents.{name}."
                    agents[name] = fill_plan(agent, settings, place)
            filled[key] = agents
        elif path and key in _TEXTS:
            filled[key] = value
        else:
            place = f"{path}{key}"
            filled[key] = expand(value, settings.lookup, path=place, subject="plan")
    return filled


def new_record(composition: Composition) -> SessionRecord:
    """Say who a new session is."""
    profile = composition.profile
    provider, model = provider_and_model(composition.plan)
    return SessionRecord(
        session_id=str(uuid4()),
        working_dir=str(composition.dirs.working_dir),
        profile=None if profile is None else profile.name or None,
        provider=provider,
        model=model,
    )
