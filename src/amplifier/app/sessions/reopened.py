"""What a stored session is made of when it is opened again: what it was made of before, and never less guarded.

The recorded plan is the base. Of the plan that a new session would have, only what restricts is added; see
`amplifier.app.plans.restrictions`. Whatever cannot be restored as it was refuses the session and is named, unless the
person asks for the plan of now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.modules.origins import check_origins, find_origins
from amplifier.app.modules.resolver import LayeredResolver, make_resolver
from amplifier.app.plan_entries import entries, label
from amplifier.app.plans.base_plans import PlanOptions, choose_from, read_plan, set_loop
from amplifier.app.plans.restrictions import Restricted, lower_limits, restrict
from amplifier.app.plans.tool_rules import without_denials
from amplifier.app.projects.files import INSTRUCTIONS, ProjectFiles
from amplifier.app.sessions.composition import (
    Composition,
    bare_composition,
    compose,
    fill_plan,
)
from amplifier.app.settings.settings import Settings
from amplifier.app.store.lineage import find_recorded, subject_of
from amplifier.app.store.plan_secrets import conceal, reveal
from amplifier.app.store.recorded import PlanFile, RecordedComposition
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.kernel.plans.overlays import merge_plans
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Reopened", "describe_composition", "reopen", "resolver_of"]

_OVERRIDE: Final = "--with-current-plan"
_REMEDY: Final = Problem(
    _OVERRIDE, "resumes the session with what a new one would be made of now instead"
)
_UNRECORDED: Final = (
    "It is not recorded what this session was made of: it was imported, or stored by an earlier version. "
    "It is resumed with the profile and the settings of now."
)
_CHANGED: Final = (
    "Profile, settings or installed modules have changed since. This session keeps what it was made of; "
    f"{_OVERRIDE} takes what there is now."
)


@attrs.frozen(kw_only=True)
class Reopened:
    """What a stored session is made of now, and what the person should know of it."""

    composition: Composition
    notices: tuple[str, ...] = ()


def reopen(
    store: ProjectSessions,
    record: SessionRecord,
    options: PlanOptions,
    dirs: AppDirs,
    *,
    with_current_plan: bool = False,
) -> Reopened:
    """Return what a stored session is made of: the one way to it, for every command that opens one again.

    Args:
        store: where the session is stored.
        record: who it is; a child as well as a root.
        options: what the person chose this time. Another provider or model is taken and recorded; another profile or
            plan file needs `with_current_plan`.
        dirs: where the files stand.
        with_current_plan: compose as for a new session instead.

    Raises:
        ConfigError: something cannot be restored as it was; names all of it.
    """
    folder = store.folder(record.session_id)
    if with_current_plan:
        composed = _compose_anew(options, record, dirs, folder)
        return Reopened(composition=attrs.evolve(composed, replaces_recorded=True))
    try:
        recorded = find_recorded(store, record)
        # A recorded plan that cannot be restored refuses the session. Only one that was
        # never recorded falls back to the plan of now.
        if recorded is not None:
            return _restored(recorded, record, options, dirs, folder)
    except ConfigError as error:
        raise ConfigError([*error.problems, _REMEDY], subject=error.subject) from error
    if options.provider is None:
        options = attrs.evolve(
            options, provider=record.provider, model=options.model or record.model
        )
    return Reopened(
        composition=_compose_anew(options, record, dirs, folder),
        notices=(_UNRECORDED,),
    )


def describe_composition(composition: Composition) -> RecordedComposition:
    """Return what is recorded of a composition.

    Raises:
        ConfigError: its plan has problems.
    """
    # Instructions are as they are now, also where the session is resumed without them.
    used = {
        kind: items
        for kind, items in composition.project.used.items()
        if kind != INSTRUCTIONS
    }
    if composition.is_plan_file:
        # nothing else reaches such a plan
        used = {kind: items for kind, items in used.items() if kind == "modules"}
    if composition.profile is None:
        profile = None
    else:
        profile = composition.profile.name
    # A child has its agent's name for a profile; its guards are those of the profile
    # that its root was made of.
    if composition.agent_name is not None:
        profile = composition.chosen.profile
    return RecordedComposition(
        plan=conceal(composition.written),
        is_literal=composition.is_literal,
        profile=profile or None,
        agent_name=composition.agent_name,
        provider=composition.chosen.provider,
        model=composition.chosen.model,
        system=composition.system,
        plan_file=composition.plan_file,
        modules=find_origins(composition.plan, resolver_of(composition)),
        project=used,
    )


def resolver_of(composition: Composition) -> LayeredResolver:
    """Return what finds the sources of a composition's modules; settings do not change a plan file's."""
    if composition.is_plan_file:
        settings = Settings()
    else:
        settings = composition.settings
    return make_resolver(
        composition.dirs, composition.project, settings, composition.collections
    )


def _compose_anew(
    options: PlanOptions, record: SessionRecord, dirs: AppDirs, folder: Path
) -> Composition:
    if options.profile is None and options.file is None:
        options = attrs.evolve(options, profile=record.profile)
    return compose(options, dirs, session=folder)


def _restored(
    recorded: RecordedComposition,
    record: SessionRecord,
    options: PlanOptions,
    dirs: AppDirs,
    folder: Path,
) -> Reopened:
    subject = subject_of(record)
    _refuse(
        [
            *_other_choices(recorded, options),
            *_untrusted(recorded, ProjectFiles(dirs)),
        ],
        subject,
    )
    chosen = PlanOptions(
        profile=recorded.profile or "",
        provider=options.provider or recorded.provider,
        model=options.model or recorded.model,
    )
    present, now = _present(recorded, chosen, dirs, folder)
    plan = choose_from(recorded.plan, now, options)
    restricted = Restricted(plan=plan)
    if recorded.plan_file is None:
        restricted = restrict(plan, now, agent=recorded.agent_name)
    # After the restrictions: what they added may hold secrets that were concealed as
    # well.
    revealed, missing = reveal(restricted.plan, [now, present.plan])
    _refuse([*restricted.problems, *missing], subject)
    if recorded.is_literal:
        filled = revealed
    else:
        filled = fill_plan(revealed, present.settings)
    _refuse(_uncounted(record, filled), subject)
    composition = attrs.evolve(
        present,
        plan=options.for_once(filled),
        system=recorded.system if options.system is None else options.system,
        denied_tools=options.denied_tools,
        allowed_tools=options.allowed_tools,
        written=revealed,
        chosen=chosen,
        profile=present.profile if recorded.agent_name is None else None,
        agent_name=recorded.agent_name,
        is_literal=recorded.is_literal,
        plan_file=recorded.plan_file,
    )
    # Last, since the sources of modules are references to the environment too, which
    # are filled in by now.
    _refuse(check_origins(recorded.modules, filled, resolver_of(composition)), subject)
    return Reopened(
        composition=composition,
        notices=tuple(_notices(recorded, restricted, now, options)),
    )


def _present(
    recorded: RecordedComposition, chosen: PlanOptions, dirs: AppDirs, folder: Path
) -> tuple[Composition, Mapping[str, JSONValue]]:
    """Return what such a session would be made of now, and the plan of it that may restrict the recorded one."""
    if recorded.plan_file is not None:
        # Neither a profile nor the settings reach a plan file, so there is nothing of
        # now that could restrict it.
        return bare_composition(dirs, session=folder), _plan_file_of(recorded)
    present = compose(chosen, dirs, session=folder)
    return present, present.plan if recorded.is_literal else present.written


def _notices(
    recorded: RecordedComposition,
    restricted: Restricted,
    now: Mapping[str, JSONValue],
    options: PlanOptions,
) -> list[str]:
    notices = []
    before, after = _providers(recorded.plan), _providers(restricted.plan)
    if options.provider is not None and before != after:
        notices.append(
            f"The provider was {', '.join(before) or 'none'}, and is {', '.join(after)} from now on."
        )
    if restricted.removed:
        notices.append(
            f"Left out, since it was taken away meanwhile: {', '.join(restricted.removed)}."
        )
    if (
        recorded.plan_file is None
        and recorded.agent_name is None
        # limits and denials that were chosen when the session began are no change since
        and _differ(
            without_denials(restricted.plan),
            lower_limits(without_denials(now), _limits_of(restricted.plan)),
        )
    ):
        notices.append(_CHANGED)
    return notices


def _limits_of(plan: Mapping[str, JSONValue]) -> JSONObject:
    return as_object(as_object(plan.get("session")).get("limits"))


def _differ(plan: Mapping[str, JSONValue], now: Mapping[str, JSONValue]) -> bool:
    """Tell whether two plans differ, but for who answers: that is the person's choice."""
    alike = []
    for each in (plan, now):
        # Merged with nothing, both plans are written in one form; concealed, a renewed
        # key is no difference.
        copy: JSONObject = {**conceal(merge_plans(each, {})), "providers": []}
        for key in ("default_provider", "model"):
            set_loop(copy, key, None)
        alike.append(
            {
                key: value
                for key, value in merge_plans(copy, {}).items()
                if value not in ([], {})
            }
        )
    return alike[0] != alike[1]


def _providers(plan: Mapping[str, JSONValue]) -> list[str]:
    return [label(entry) for entry in entries(plan, "providers")]


def _other_choices(
    recorded: RecordedComposition, options: PlanOptions
) -> list[Problem]:
    """Refuse another profile or plan than the recorded one: a session is made of one thing from its beginning."""
    problems = []
    if options.profile is not None and options.profile != recorded.profile:
        if recorded.plan_file is not None:
            was = "of a plan file"
        else:
            was = f"of the profile {recorded.profile or '(none)'}"
        problems.append(
            Problem(f"--profile {options.profile}", f"the session was made {was}")
        )
    if options.file is not None:
        known = recorded.plan_file
        # By content, not by path: the same plan may stand elsewhere now.
        if known is None or PlanFile.of(options.file).sha256 != known.sha256:
            if known is None:
                was = "not made of a plan file"
            else:
                was = f"made of {known.path} as it was then"
            problems.append(Problem(f"--plan {options.file}", f"the session was {was}"))
    return problems


def _uncounted(record: SessionRecord, plan: Mapping[str, JSONValue]) -> list[Problem]:
    """Refuse limits of a whole session where it is not known what the session has spent."""
    limits = _limits_of(plan)
    if not record.is_renewed:
        return []
    problem = "what the session has spent is not known: its damaged record was made anew by a repair"
    return [
        Problem(f"session.limits.{name}", problem)
        for name, limit in limits.items()
        if name.startswith("session_") and limit is not None
    ]


def _untrusted(recorded: RecordedComposition, project: ProjectFiles) -> list[Problem]:
    """Refuse what came from the project's folder, unless a person trusts what is there now."""
    problems = []
    for kind in recorded.project:
        decision = project.evaluate(kind)
        # Trusted and empty is not enough: what guarded the session may have been
        # deleted.
        if decision is None or (decision.trusted and decision.contents):
            continue
        why = decision.reason or "the files are not there any more"
        problem = f"the session was made with the {kind} of this folder, which are not trusted now: {why}"
        problem += "; 'amplifier trust' shows them and asks"
        problems.append(Problem(kind, problem))
    return problems


def _plan_file_of(recorded: RecordedComposition) -> JSONObject:
    """Return the plan of the recorded file, which has the secrets; nothing where the file changed since."""
    if recorded.plan_file is None or not recorded.plan_file.is_unchanged():
        return {}
    return read_plan(Path(recorded.plan_file.path))


def _refuse(problems: Sequence[Problem], subject: str) -> None:
    if problems:
        raise ConfigError(problems, subject=subject)
