"""A profile as it is shown to a person: its chain, its plan with every origin, the instruction, what is missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from amplifier.app.modules.own import how_to_add
from amplifier.app.plan_entries import named_modules
from amplifier.app.profiles.compiler import CompiledProfile, ValueOrigin, flatten
from amplifier.app.sessions.composition import Composition
from amplifier.kernel.plans.overlays import merge_plans
from amplifier.kernel.plans.plan import MountPlanValidator
from amplifier_sdk.errors import Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import withhold

__all__ = [
    "PlanValue",
    "ProfileDifference",
    "compare",
    "estimate_tokens",
    "find_problems",
    "list_values",
    "profile_to_dict",
]

SETTINGS = "settings"
"""The origin of what the settings, or the choices on the command line, changed."""

INSTALLED = "installed"
"""The origin of what a session has because it is installed: neither a profile nor the settings name it."""


@attrs.frozen(kw_only=True)
class PlanValue:
    """A value of the plan, where it comes from, and what it took the place of."""

    path: str
    value: JSONValue
    origin: str
    replaced: JSONValue = None


@attrs.frozen(kw_only=True)
class ProfileDifference:
    """A value that two profiles have otherwise; `None` where one lacks it."""

    path: str
    left: JSONValue
    right: JSONValue


def list_values(composition: Composition) -> list[PlanValue]:
    """Return every value of a session's plan but for its agents, secrets withheld, each with its origin."""
    own, base = _values(composition.profile_plan), _values(composition.base_plan)
    origins = {} if composition.profile is None else composition.profile.origins
    # What a profile says of its model becomes the loop's configuration, and stands in no profile's plan.
    model = ValueOrigin(
        profile="" if composition.profile is None else composition.profile.name
    )
    values = []
    for path, value in flatten(
        withhold(
            {key: value for key, value in composition.plan.items() if key != "agents"}
        )
    ):
        origin = ValueOrigin(profile=SETTINGS, replaced=base.get(path))
        if base.get(path) == value:
            if path in own:
                origin = origins.get(path, model)
            else:
                origin = ValueOrigin(profile=INSTALLED)
        values.append(
            PlanValue(
                path=path,
                value=value,
                origin=origin.profile or INSTALLED,
                replaced=origin.replaced,
            )
        )
    return values


def compare(left: CompiledProfile, right: CompiledProfile) -> list[ProfileDifference]:
    """Return where two profiles differ, by the paths of their plans, instructions last."""
    one, other = _all(left), _all(right)
    return [
        ProfileDifference(path=path, left=one.get(path), right=other.get(path))
        for path in [*one, *(path for path in other if path not in one)]
        if one.get(path) != other.get(path)
    ]


def find_problems(
    composition: Composition, installed: Collection[str]
) -> list[Problem]:
    """Return what keeps a session of a composition from starting: a plan that is not sound, and missing modules.

    Args:
        composition: what the session would be made of.
        installed: the ids of the modules that can be mounted.
    """
    problems = list(MountPlanValidator().validate(composition.plan))
    for path, entry in named_modules(composition.plan):
        module = entry.get("module")
        if (
            isinstance(module, str)
            and module not in installed
            and entry.get("source") is None
        ):
            hint = how_to_add(module, installed)
            problems.append(
                Problem(path, f"the module {module!r} is not installed; {hint}")
            )
    return problems


def profile_to_dict(composition: Composition, instruction: str) -> JSONObject:
    """Write what `list_values` says, the chain and the instruction as JSON data."""
    profile = composition.profile
    chain: list[JSONValue] = [
        {
            "name": file.name,
            "path": str(file.path),
            "level": file.level,
            "version": file.head.version,
            "description": file.head.description,
        }
        for file in (profile.chain if profile is not None else ())
    ]
    values: list[JSONValue] = [
        {
            "path": value.path,
            "value": value.value,
            "origin": value.origin,
            "replaced": value.replaced,
        }
        for value in list_values(composition)
    ]
    agents = composition.plan.get("agents")
    shown = {
        key: value
        for key, value in withhold(composition.plan).items()
        if key != "agents"
    }
    return {
        "name": None if profile is None else profile.name,
        "chain": chain,
        "plan": shown,  # type: ignore[dict-item]  # a plan is JSON data, and withholding keeps it
        "values": values,
        "agents": sorted(agents) if isinstance(agents, Mapping) else [],
        "instruction": {
            "text": instruction,
            "characters": len(instruction),
            "tokens": estimate_tokens(instruction),
        },
    }


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text has: four characters each."""
    return (len(text) + 3) // 4


def _values(plan: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Return the values of a plan by their paths, written as those of a plan that settings were laid over."""
    return dict(flatten(withhold(merge_plans(plan, {}))))


def _all(profile: CompiledProfile) -> dict[str, JSONValue]:
    values = dict(flatten(withhold(profile.plan)))
    if isinstance(profile.agents, str):
        values["agents"] = profile.agents
    else:
        values["agents"] = list(profile.agents)
    values["instruction"] = profile.instruction
    return values
