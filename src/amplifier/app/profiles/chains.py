"""From a profile to a mount plan: the chain that it extends, merged from its root, each value with its origin."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from amplifier.app.profiles.documents import ProfileFile
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.sources.absolute_sources import anchor_sources
from amplifier.kernel.plans.overlays import merge_plans, merge_values
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "MAX_CHAIN",
    "CompiledProfile",
    "Origin",
    "compile_chain",
    "flatten",
    "follow_chain",
]

MAX_CHAIN: Final = 100
"""How many profiles may build on each other."""


@attrs.frozen(kw_only=True)
class Origin:
    """Which profile a value of the plan comes from, and what it took the place of."""

    profile: str
    replaced: JSONValue = None


@attrs.frozen(kw_only=True)
class CompiledProfile:
    """What a chain of profiles comes to.

    Args:
        chain: the profiles, the root first.
        plan: the mount plan, without agents.
        agents: which agents a session knows: `all`, `none` or names.
        ui: what a person is shown, where the chain says it.
        origins: where each value of the plan comes from, by its path, modules by id: `tools[tool-bash].config.timeout`.
        own_agents: agents that a bundle brings along, by name.
    """

    chain: tuple[ProfileFile, ...]
    plan: JSONObject
    agents: str | tuple[str, ...]
    ui: Mapping[str, JSONValue]
    origins: Mapping[str, Origin]
    own_agents: Mapping[str, JSONObject] = attrs.field(factory=dict)

    @property
    def profile(self) -> ProfileFile:
        """The profile that was asked for."""
        return self.chain[-1]

    @property
    def instruction(self) -> str:
        """What the agent is told: the body of the profile that was asked for; bodies are not inherited."""
        return self.profile.body

    @property
    def model(self) -> str | None:
        """The model that the chain names: of its last profile that names one."""
        return next(
            (file.head.model for file in reversed(self.chain) if file.head.model), None
        )

    def says(self, section: str) -> bool:
        """Say whether a profile of the chain has a section of the plan, or excludes it."""
        return any(
            section in file.fields or section in _mapping(file.fields.get("exclude"))
            for file in self.chain
        )


def follow_chain(library: ProfileLibrary, name: str) -> tuple[ProfileFile, ...]:
    """Read a profile and those that it builds on, the root first.

    Raises:
        ConfigError: one is missing or not sound, or they build on each other in a circle; shows the chain.
    """
    chain = [library.find(name)]
    while (base := chain[-1].head.extends) is not None:
        trail = [file.name for file in chain]
        try:
            found = library.find(base, beside=chain[-1])
        except ConfigError as error:
            problem = Problem(" -> ".join([*trail, base]), "the chain breaks here")
            raise ConfigError(
                [problem, *error.problems], subject=error.subject
            ) from error
        if os.path.realpath(found.path) in (
            os.path.realpath(file.path) for file in chain
        ):
            problem = Problem(
                " -> ".join([*trail, found.name]),
                "profiles extend each other in a cycle",
            )
            raise ConfigError([problem], subject="chain of profiles")
        if len(chain) == MAX_CHAIN:
            raise ConfigError(
                [Problem(name, f"more than {MAX_CHAIN} profiles extend each other")],
                subject="chain of profiles",
            )
        chain.append(found)
    return tuple(reversed(chain))


def compile_chain(chain: Sequence[ProfileFile]) -> CompiledProfile:
    """Merge a chain of profiles, the root first, into a mount plan. Nothing is read or changed.

    Each profile takes out what it excludes from what it builds on and is laid over the rest.

    Raises:
        ConfigError: a profile excludes what cannot be excluded.
    """
    plan: dict[str, object] = {}
    agents: str | tuple[str, ...] = "all"
    ui: object = {}
    origins: dict[str, Origin] = {}
    for file in chain:
        excluded = _without(plan, _mapping(file.fields.get("exclude")), file)
        merged = merge_plans(
            excluded, anchor_sources(file.plan, file.path.absolute().parent)
        )
        origins = _traced(origins, plan, merged, file.name)
        plan = merged
        ui = merge_values(ui, file.fields.get("ui"))
        chosen = file.fields.get("agents")
        if chosen is not None:
            if isinstance(chosen, str):
                agents = chosen
            else:
                agents = tuple(map(str, chosen if isinstance(chosen, list) else ()))
    return CompiledProfile(
        chain=tuple(chain),
        plan=_json(plan),
        agents=agents,
        ui=_mapping(ui),
        origins=dict(sorted(origins.items())),
    )


def flatten(value: object, path: str = "") -> Iterator[tuple[str, JSONValue]]:
    """Return the values within a plan with their paths; a module of a list is named by its id."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from flatten(item, f"{path}.{name}" if path else str(name))
    elif (
        isinstance(value, list)
        and value
        and all(isinstance(item, Mapping) and "module" in item for item in value)
    ):
        for item in value:
            label = item.get("instance_id") or item["module"]
            yield from flatten(item, f"{path}[{label}]")
    else:
        yield path, value  # type: ignore[misc]  # plans hold JSON data


def _traced(
    origins: Mapping[str, Origin], before: object, after: object, name: str
) -> dict[str, Origin]:
    """Return the origins of a plan's values once a profile was laid over it: what differs is the profile's."""
    old = dict(flatten(before))
    traced: dict[str, Origin] = {}
    for path, value in flatten(after):
        if path in old and old[path] == value and path in origins:
            traced[path] = origins[path]
        else:
            traced[path] = Origin(profile=name, replaced=old.get(path))
    return traced


def _without(
    plan: Mapping[str, object], exclude: Mapping[str, JSONValue], file: ProfileFile
) -> dict[str, object]:
    """Return a plan without what a profile excludes."""
    result = dict(plan)
    for key, rule in exclude.items():
        if key not in result:
            continue
        kept = _kept(result.pop(key), rule, f"exclude.{key}", file)
        if kept:
            result[key] = kept
    return result


def _kept(value: object, rule: JSONValue, path: str, file: ProfileFile) -> object:
    if rule == "all":
        return None
    if isinstance(rule, list) and isinstance(value, list):
        return [entry for entry in value if _id_of(entry) not in rule]
    if isinstance(rule, list) and isinstance(value, Mapping):
        return {key: item for key, item in value.items() if key not in rule}
    if isinstance(rule, Mapping) and isinstance(value, Mapping):
        result = dict(value)
        for key, inner in rule.items():
            if key in result:
                kept = _kept(result.pop(key), inner, f"{path}.{key}", file)
                if kept:
                    result[key] = kept
        return result
    problem = Problem(
        path, f"'all', a list of names, or a mapping of these; got {rule!r:.80}"
    )
    raise ConfigError([problem], subject=f"profile {str(file.path)!r}")


def _id_of(entry: object) -> object:
    if isinstance(entry, Mapping):
        return entry.get("module")
    return entry


def _mapping(value: object) -> Mapping[str, JSONValue]:
    if isinstance(value, Mapping):
        return value
    return {}


def _json(plan: Mapping[str, object]) -> JSONObject:
    return dict(plan)  # type: ignore[arg-type]  # profiles hold JSON data, and merging keeps it
