"""From a chain of profiles and bundles to a mount plan, each value with its origin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

from amplifier.app.profiles.chain import Chain, follow
from amplifier.app.profiles.documents import ProfileFile
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.profiles.selection import active_profile, as_bundle
from amplifier.app.settings.layers import Key
from amplifier.app.settings.settings import Settings
from amplifier.app.sources.absolute_sources import anchor_sources
from amplifier.kernel.plans.overlays import merge_plans, merge_values
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "CompiledProfile",
    "ValueOrigin",
    "choose_profile",
    "compile_chain",
    "flatten",
    "trace",
]


@attrs.frozen(kw_only=True)
class ValueOrigin:
    """Which file a value of the plan comes from, and what it took the place of."""

    profile: str
    replaced: JSONValue = None


def flatten(value: object, path: str = "") -> Iterator[tuple[str, JSONValue]]:
    """Yield the values in a plan with their paths; a module of a list has its id."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from flatten(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and all(map(_is_module, value)):
        for item in value:
            label = item.get("instance_id") or item["module"]
            yield from flatten(item, f"{path}[{label}]")
    else:
        yield path, value  # type: ignore[misc]  # plans hold JSON data


def trace(
    origins: Mapping[str, ValueOrigin], before: object, after: object, name: str
) -> dict[str, ValueOrigin]:
    """Return the origins of a plan's values once a file was laid over it.

    Args:
        origins: those of the plan before.
        before: the plan before.
        after: the plan with the file: what differs is the file's.
        name: the file's name.
    """
    old = dict(flatten(before))
    traced: dict[str, ValueOrigin] = {}
    for path, value in flatten(after):
        # A file that repeats a value takes nothing's place: the origin stays with who
        # said it first.
        traced[path] = ValueOrigin(profile=name, replaced=old.get(path))
        if path in origins and old[path] == value:
            traced[path] = origins[path]
    return traced


def _is_module(entry: object) -> bool:
    return isinstance(entry, Mapping) and "module" in entry


@attrs.frozen(kw_only=True)
class CompiledProfile:
    """What a chain comes to.

    Args:
        name: under which it is asked for again.
        chain: the files, the root first.
        plan: the mount plan, without agents.
        agents: which agents a session knows: `all`, `none` or names.
        own_agents: agents that bundles bring along, by name.
        ui: what a person is shown, where the chain says it.
        origins: where each value of the plan comes from, by its path, modules by id:
            `tools[tool-bash].config.timeout`.
        instruction: the agent's instruction, mentions not yet followed.
        folder: what these are relative to.
    """

    name: str
    chain: tuple[ProfileFile, ...]
    plan: JSONObject
    agents: str | tuple[str, ...]
    own_agents: Mapping[str, JSONObject] = attrs.field(factory=dict)
    ui: Mapping[str, JSONValue]
    origins: Mapping[str, ValueOrigin]
    instruction: str
    folder: Path

    @property
    def profile(self) -> ProfileFile:
        """The profile or bundle that was asked for."""
        return self.chain[-1]

    @property
    def model(self) -> str | None:
        """The model of the last profile that names one."""
        models = (file.model for file in reversed(self.chain))
        return next(filter(None, models), None)

    def says(self, section: str) -> bool:
        """Tell whether a file of the chain has a section of the plan, or excludes it."""
        return any(file.says(section) for file in self.chain)


def choose_profile(
    name: str | None,
    library: ProfileLibrary,
    settings: Settings,
    default: Callable[[], JSONObject],
) -> CompiledProfile | None:
    """Compile what a session is made of, with the bundles that every session gets.

    Args:
        name: what the person chose, a bundle's with `bundle:` before it; an empty one
            chooses nothing, whatever is active.
        library: finds profiles.
        settings: the settings that hold.
        default: returns the plan of sessions without a profile.

    Returns:
        `None` where nothing is chosen, and no session gets a bundle.

    Raises:
        ConfigError: something is missing or not sound.
    """
    if name is None:
        name = active_profile(settings)
    chosen = name or ""
    everywhere = [*map(as_bundle, settings.read().bundle.app)]
    if not chosen and not everywhere:
        return None
    chain = follow(library, *everywhere, *filter(None, [chosen]))
    if not chosen:
        path = library.dirs.home / "profile.md"
        # Bundles of every session are laid under something: without a profile, under
        # what is installed.
        chain.files.append(ProfileFile(path=path, level="bundled", plan=default()))
    return compile_chain(chain, chosen)


def compile_chain(chain: Chain, name: str | None = None) -> CompiledProfile:
    """Merge a chain, the root first, into a mount plan.

    Each file takes out what it excludes from what it builds on, and is laid over the
    rest.

    Args:
        chain: the files.
        name: under which the whole is asked for again; default the last file's.

    Raises:
        ConfigError: a file excludes what cannot be excluded, or what a bundle brings
            along is missing.
    """
    chain.lend()
    plan: dict[str, object] = {}
    origins: dict[str, ValueOrigin] = {}
    ui: object = {}
    for file in chain.files:
        # Excluded before the file is laid over it, so that a file can replace a section
        # as a whole.
        rest = as_object(_without(plan, file.exclude, ("exclude",), file))
        # What its sources are relative to is lost once plans are merged.
        overlay = anchor_sources(dict(file.plan), file.path.absolute().parent)
        merged = merge_plans(rest, overlay)
        origins = trace(origins, plan, merged, file.name)
        plan = merged
        ui = merge_values(ui, file.ui)
    agents, own_agents = _agents(chain)
    instruction, folder = _instruction(chain)
    return CompiledProfile(
        name=name or chain.files[-1].name,
        chain=tuple(chain.files),
        plan=dict(plan),  # type: ignore[arg-type]  # files hold JSON data, and merging keeps it
        agents=agents,
        own_agents=own_agents,
        ui=as_object(ui),
        origins=dict(sorted(origins.items())),
        instruction=instruction,
        folder=folder,
    )


def _agents(chain: Chain) -> tuple[str | tuple[str, ...], Mapping[str, JSONObject]]:
    """Return which agents a session knows, and those that bundles bring along.

    The last profile that says it chooses. What bundles name joins that choice, and is
    all there is where no profile is in the chain.
    """
    profiles = chain.of("profile")
    choices = (file.agents for file in reversed(profiles))
    choice = next((choice for choice in choices if choice is not None), "all")
    named, own = chain.agent_names, chain.own_agents()
    if choice == "none":
        return choice, {}
    if choice == "all":
        if profiles or not (named or own):
            return choice, own
        return named or "none", own
    return (*choice, *named), own


def _instruction(chain: Chain) -> tuple[str, Path]:
    """Return the agent's instruction, and the folder that its mentions are relative to.

    The body of a profile is its own; that of a bundle holds until another has one.
    """
    bundles, profiles = chain.of("bundle"), chain.of("profile")
    speaking = [*(file for file in bundles if file.body)][-1:] + profiles[-1:]
    *_, last = chain.files[-1], *speaking
    parts = filter(None, (chain.mentions(), *(file.body for file in speaking)))
    return "\n\n".join(parts), last.path.parent


def _without(value: object, rule: JSONValue, key: Key, file: ProfileFile) -> object:
    if rule == "all":
        return None
    if isinstance(rule, list) and isinstance(value, list):
        return [entry for entry in value if _id_of(entry) not in rule]
    if isinstance(rule, list) and isinstance(value, Mapping):
        return {name: item for name, item in value.items() if name not in rule}
    if isinstance(rule, Mapping) and isinstance(value, Mapping):
        rest = dict(value)
        for name in [name for name in rule if name in rest]:
            left = _without(rest.pop(name), rule[name], (*key, name), file)
            # An empty mapping would still count as a section that the plan has.
            if left:
                rest[name] = left
        return rest
    problem = f"'all', a list of names, or a mapping of these; got {rule!r:.80}"
    raise file.refuse(key, problem)


def _id_of(entry: object) -> object:
    if isinstance(entry, Mapping):
        return entry.get("module")
    return entry
