"""One mount plan laid over another: the rule by which an agent's partial plan becomes a whole one.

Mappings are merged key by key and `None` takes a key away. Lists of modules are merged by module id and
`instance_id`, other lists are replaced. A module that stays the same keeps its source and gets both
configurations; a loop or context that becomes another one keeps nothing of the one before. What has the wrong
type is laid over as it is, for the plan's reader to name. Nothing given is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from amplifier_sdk.hookspecs import KINDS, ModuleKind

__all__ = [
    "gathered",
    "keep_modules",
    "merge_modules",
    "merge_plans",
    "merge_values",
    "replace_modules",
]

_Plan: TypeAlias = dict[str, object]
AGENT_KEYS: Final = ("description", "system")
"""What an agent's partial plan holds besides a plan's sections."""


def merge_plans(
    base: Mapping[str, object],
    overlay: Mapping[str, object],
    kinds: Sequence[ModuleKind] = KINDS,
) -> _Plan:
    """Return `base` with `overlay` laid over it.

    The loop and the context come out as mappings under `session`, with the configuration of their own
    sections in them, and every module of a list as a mapping.

    Args:
        base: a mount plan.
        overlay: a partial one, such as an agent's; its `description` and `system` are left out.
        kinds: the module types, which say where a plan has modules.
    """
    lists = {kind.section for kind in kinds if not kind.single}
    singles = {kind.section for kind in kinds if kind.single}
    plan, above = gathered(base, kinds), gathered(overlay, kinds)
    for key, value in above.items():
        below = plan.get(key)
        if value is None:
            plan.pop(key, None)
        elif key in lists and isinstance(value, list):
            plan[key] = merge_modules(below if isinstance(below, list) else [], value)
        elif key == "session" and isinstance(value, dict):
            plan[key] = _merged_session(_mapping(below), value, singles)
        else:
            plan[key] = merge_values(below, value)
    return plan


def keep_modules(
    plan: Mapping[str, object], section: str, keeps: Callable[[str], bool]
) -> _Plan:
    """Return a merged plan whose section has only the modules with the given ids."""
    modules = plan.get(section)
    if isinstance(modules, list):
        retained = [entry for entry in modules if keeps(_key(entry)[0])]
    else:
        retained = []
    return {**plan, section: retained}


def replace_modules(
    plan: Mapping[str, object], section: str, entries: Sequence[object]
) -> _Plan:
    """Return a merged plan in whose section entries stand in the places of those of their ids; others stay."""
    modules, others = plan.get(section), {_key(entry): entry for entry in entries}
    if not isinstance(modules, list):
        return dict(plan)
    return {**plan, section: [others.get(_key(entry), entry) for entry in modules]}


def merge_modules(below: Sequence[object], above: Sequence[object]) -> list[object]:
    """Merge two lists of modules by id and instance, each at its first place, new ones at the end."""
    modules = {_key(entry): entry for entry in below}
    for entry in above:
        # a dict keeps the first place of a key, whatever is stored under it later
        known = modules.get(_key(entry), {})
        if isinstance(entry, dict):
            modules[_key(entry)] = _merged_module(_mapping(known), entry)
        else:
            modules[_key(entry)] = entry
    return list(modules.values())


def merge_values(below: object, above: object) -> object:
    """Merge two mappings key by key, where `None` takes a key away; of anything else the upper one counts."""
    if above is None:
        return below
    if not isinstance(above, dict):
        return above
    merged = dict(_mapping(below))
    for key, value in above.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_values(merged.get(key), value)
    return merged


def gathered(plan: Mapping[str, object], kinds: Sequence[ModuleKind] = KINDS) -> _Plan:
    """Copy a plan, whole or partial, with every module as a mapping and the single ones whole under `session`."""
    whole = {
        key: _copied(value) for key, value in plan.items() if key not in AGENT_KEYS
    }
    for kind in kinds:
        if kind.single:
            _gather_single(whole, kind.section)
        elif isinstance(modules := whole.get(kind.section), (list, tuple)):
            whole[kind.section] = [
                {"module": entry} if isinstance(entry, str) else entry
                for entry in modules
            ]
    return whole


def _gather_single(plan: _Plan, name: str) -> None:
    """Put the parts of the loop or the context together: its id, `NAME_source`, and the section `NAME`."""
    session = plan.get("session", {})
    if not isinstance(session, dict):
        return
    entry = session.get(name)
    module: _Plan
    if isinstance(entry, str):
        module = {"module": entry}
    else:
        module = _mapping(entry)
    if f"{name}_source" in session:
        module = {"source": session.pop(f"{name}_source"), **module}
    if isinstance(section := plan.get(name), dict):
        del plan[name]
        if config := {
            **_mapping(section.get("config")),
            **_mapping(module.get("config")),
        }:
            module = {**module, "config": config}
    if module:
        plan["session"] = {**session, name: module}


def _merged_session(below: _Plan, above: _Plan, singles: set[str]) -> _Plan:
    session = dict(below)
    for key, value in above.items():
        if value is None:
            session.pop(key, None)
        elif key in singles:
            session[key] = _merged_module(_mapping(below.get(key)), _mapping(value))
        else:
            session[key] = merge_values(below.get(key), value)
    return session


def _merged_module(below: _Plan, above: _Plan) -> _Plan:
    """Merge what is laid over a module; another module takes its place whole, and a source is one value."""
    if "module" in above and above["module"] != below.get("module"):
        # another module understands neither the configuration nor the source
        below = {}
    module = {
        **below,
        **above,
        "config": merge_values(below.get("config"), above.get("config")),
    }
    return {key: value for key, value in module.items() if value is not None}


def _key(entry: object) -> tuple[str, object]:
    """Return what names a module in its list; what is no module at all is a key of its own."""
    module = _mapping(entry).get("module")
    if isinstance(module, str):
        return (module, _mapping(entry).get("instance_id"))
    # no two are equal, so that each is there for the plan's reader to name
    return ("", id(entry))


def _mapping(value: object) -> _Plan:
    if isinstance(value, dict):
        return value
    return {}


def _copied(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
